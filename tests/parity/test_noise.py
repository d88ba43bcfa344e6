"""The noise scale that a run reports, against one computed by brute force from the gradients of the whole training set.

The run trains for a while and is then held where it is, by a learning rate of zero: the estimate is a moving mean over many
steps, and while the weights move it follows them. It is off by some 8 % from chance (CHANCE), so what is compared is the mean of
its last values.
"""

import statistics

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional

import plain
from program import checkpoint

MOVING, HELD, BATCH = 40, 600, 256
LAST = 500  # steps whose estimates are compared
CHANCE = 0.08
SMALL = 50  # samples of one gradient of the brute-force estimate


def brute_force(module, data):
    """tr of the covariance of one sample's gradient over the squared norm of their mean, from batches of SMALL."""
    x, y = data
    parameters = list(module.parameters())
    total, squares = 0, 0.0
    batches = list(zip(x.split(SMALL), y.split(SMALL)))
    for images, labels in batches:
        gradients = torch.autograd.grad(functional.cross_entropy(module(images), labels), parameters)
        flat = torch.cat([gradient.flatten() for gradient in gradients]).double()
        squares += flat.square().sum().item()
        total = total + flat
    count = len(batches)
    mean_square = (total / count).square().sum().item()
    trace = SMALL * (squares / count - mean_square) * count / (count - 1)
    return trace / (mean_square - trace / len(x))


@pytest.mark.parametrize("model", ["mlp", pytest.param("fashion-cnn", marks=pytest.mark.nightly)])
def test_noise_scale_is_that_of_brute_force(motley, fashion, tmp_path, measure, model):
    run = tmp_path / "run"
    settings = [f"train.global_batch={BATCH}", "train.shares=[3,1]", "train.seed=1", 'data.test_uri=""']
    motley.train(run, model, 2, [*settings, f"train.steps={MOVING}"])
    held = motley.train(run, None, 2, ["optimizer.lr=0", f"train.steps={MOVING + HELD}"], resume=True)
    module = plain.MODULES[model]()
    module.load_state_dict(load_file(checkpoint(run, MOVING + HELD) / "model.safetensors"))
    expected = brute_force(module, fashion["train"])
    assert held.of("step")[0]["noise_scale"] is None, "one step says nothing"
    found = statistics.fmean(step["noise_scale"] for step in held.of("step")[-LAST:])
    (done,) = held.of("done")
    assert done["useful_global_batch"] > 0
    measure(f"expected {expected:.0f}, found {found:.0f}", abs(found / expected - 1), 3 * CHANCE)
