"""The noise scale that a run reports, against one computed by brute force from the gradients of the whole training set.

The run trains for a while and is then held where it is, by a learning rate of zero: the estimate is a moving mean over many
steps, and while the weights move it follows them. It is off by some 8 % from chance (CHANCE), so what is compared is the mean of
its last values.
"""

import statistics

import pytest
import torch
from safetensors.torch import load_file

import cases
import held
from conftest import train

LAST = held.HELD - 100  # steps whose estimates are compared
CHANCE = 0.08
SMALL = 50  # samples of one gradient of the brute-force estimate


def brute_force(module, data):
    """tr of the covariance of one sample's gradient over the squared norm of their mean, from batches of SMALL."""
    x, y = data
    parameters = list(module.parameters())
    total, squares = 0, 0.0
    batches = list(zip(x.split(SMALL), y.split(SMALL)))
    for batch in batches:
        flat = torch.cat([gradient.flatten() for gradient in torch.autograd.grad(cases.cross_entropy(module, batch), parameters)]).double()
        squares += flat.square().sum().item()
        total = total + flat
    count = len(batches)
    mean_square = (total / count).square().sum().item()
    trace = SMALL * (squares / count - mean_square) * count / (count - 1)
    return trace / (mean_square - trace / len(x))


def test_noise_scale_is_that_of_brute_force(motley):
    program = train(motley, "held.py", workers=2)
    module = held.model()
    module.load_state_dict(load_file(motley.directory / program.named("done")[0]["checkpoint"] / "model.safetensors"))
    expected = brute_force(module, held.data().tensors)
    steps = program.named("step")
    assert steps[0]["noise_scale"] is None, "one step says nothing"
    found = statistics.fmean(step["noise_scale"] for step in steps[-LAST:])
    assert program.named("done")[0]["useful_global_batch"] > 0
    assert found == pytest.approx(expected, rel=3 * CHANCE)
