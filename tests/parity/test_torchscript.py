"""TorchScript files and NumPy data: parity with the nn.Module that was scripted."""

import copy

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

import plain
from program import checkpoint

SEED, GROUP = 5, 32


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 16), nn.ReLU())
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.body(x))


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(12, 20)
        self.head = nn.Linear(20, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


class Normed(nn.Module):
    """BatchNorm over features and over channels, with different momentum."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 3)
        self.norm1 = nn.BatchNorm1d(4)
        self.fc = nn.Linear(40, 16, bias=False)
        self.norm2 = nn.BatchNorm1d(16, momentum=0.25)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        h = torch.relu(self.norm1(self.conv(x.unsqueeze(1))))
        return self.head(torch.relu(self.norm2(self.fc(h.flatten(1)))))


def make_data(directory, values, size=400, seed=3):
    """x.npy and y.npy for training and for testing; y holds classes, or `values` numbers a sample."""
    random = np.random.default_rng(seed)
    truth = random.normal(size=(12, values or 5))
    parts = {}
    for part, count in (("train", size), ("test", 100)):
        x = random.normal(size=(count, 12)).astype(np.float32)
        scores = x @ truth + 0.3 * random.normal(size=(count, truth.shape[1]))
        y = scores.astype(np.float32) if values else scores.argmax(1).astype(np.int64)
        np.save(directory / f"{part}-x.npy", x)
        np.save(directory / f"{part}-y.npy", y)
        parts[part] = (torch.from_numpy(x), torch.from_numpy(y))
    return parts


def write_run_file(directory, module, loss, batch, steps, optimizer):
    torch.jit.script(module).save(str(directory / "model.pt"))
    (directory / "run.toml").write_text(f"""
[model]
kind = "torchscript"
file = "{directory}/model.pt"
loss = "{loss}"

[data]
uri = "{directory}/train-x.npy+{directory}/train-y.npy"
test_uri = "{directory}/test-x.npy+{directory}/test-y.npy"

[train]
steps = {steps}
global_batch = {batch}
seed = {SEED}

{optimizer}""")
    return directory / "run.toml"


ADAM = '[optimizer]\nkind = "adam"\nlr = 0.01\n'
SGD = '[optimizer]\nkind = "sgd"\nlr = 0.05\nmomentum = 0.9\n'


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("model, values", [(Plain, 0), (Regression, 3)], ids=["cross_entropy", "mse"])
def test_scripted_model_follows_the_plain_loop(motley, measure, tmp_path, model, values, workers):
    torch.manual_seed(1)
    module, batch, steps = model(), 48, 60
    data = make_data(tmp_path, values)
    loss, name = (functional.mse_loss, "mse") if values else (functional.cross_entropy, "cross_entropy")
    file = write_run_file(tmp_path, module, name, batch, steps, ADAM)
    run = tmp_path / "run"
    process = motley.train(run, file, workers, ["train.shares=[2,1]"] if workers > 1 else [])
    initial = load_file(checkpoint(run, 0) / "model.safetensors")
    assert all(torch.equal(initial[tensor], value) for tensor, value in module.state_dict().items())

    recipe = plain.Recipe(lambda p: torch.optim.Adam(p, lr=0.01))
    loop = plain.train(module, recipe, data["train"], plain.batches(SEED, 400, batch, steps), loss)
    measure("loss", plain.worst_loss(process.losses(), loop.losses), 1e-6 if workers == 1 else 1e-5)
    measure("weights", plain.worst_weights(load_file(checkpoint(run, steps) / "model.safetensors"), module.state_dict()), 1e-4)

    found = process.of("eval")[-1]
    x, y = data["test"]
    output = plain.outputs(module, x)
    expected = loss(output, y).item()
    measure("loss of the evaluation", abs(found["loss"] - expected) / expected, 1e-5)
    if values:
        assert found["accuracy"] is None
    else:
        assert round(found["accuracy"] * 100) == int((output.argmax(1) == y).sum())


@pytest.mark.parametrize("workers", [1, 2])
def test_parameter_groups(motley, measure, tmp_path, workers):
    torch.manual_seed(2)
    module, batch, steps = Plain(), 50, 60
    data = make_data(tmp_path, 0)
    groups = '[[optimizer.groups]]\nmatch = "*.bias"\nweight_decay = 0.0\n\n[[optimizer.groups]]\nmatch = "head.*"\nlr = 0.01\n'
    optimizer = '[optimizer]\nkind = "adamw"\nlr = 0.005\nweight_decay = 0.3\n\n' + groups
    file = write_run_file(tmp_path, module, "cross_entropy", batch, steps, optimizer)
    run = tmp_path / "run"
    process = motley.train(run, file, workers, ["train.shares=[2,1]"] if workers > 1 else [])

    # The last rule that matches counts, so head.bias decays again.
    parameters = [
        {"params": [value for name, value in module.named_parameters() if name.endswith(".bias") and not name.startswith("head.")],
         "weight_decay": 0.0},
        {"params": list(module.head.parameters()), "lr": 0.01},
        {"params": [value for name, value in module.named_parameters() if name in ("body.0.weight", "body.2.weight")]},
    ]
    recipe = plain.Recipe(lambda p: torch.optim.AdamW(p, lr=0.005, weight_decay=0.3))
    loop = plain.train(module, recipe, data["train"], plain.batches(SEED, 400, batch, steps), parameters=parameters)
    measure("loss", plain.worst_loss(process.losses(), loop.losses), 1e-6 if workers == 1 else 1e-5)
    measure("weights", plain.worst_weights(load_file(checkpoint(run, steps) / "model.safetensors"), module.state_dict()), 1e-4)


def train_in_groups(module, data, picks, optimizer):
    """Every group of 32 positions is normalised on its own; the step's loss is the mean over all its samples."""
    statistics, losses = plain.GroupStatistics(module.train()), []
    x, y = data
    for pick in picks:
        optimizer.zero_grad()
        loss = sum(functional.cross_entropy(module(x[part]), y[part], reduction="sum") for part in pick.split(GROUP)) / len(pick)
        loss.backward()
        optimizer.step()
        statistics.step()
        losses.append(loss.item())
    statistics.finish(len(losses))
    return losses


@pytest.mark.parametrize("workers", [1, 2])
def test_batch_norm_in_groups(motley, measure, tmp_path, workers):
    torch.manual_seed(4)
    module, batch, steps = Normed(), 112, 60  # groups of 32, 32, 32, 16; the last batch of an epoch: 32, 32
    data = make_data(tmp_path, 0)
    file = write_run_file(tmp_path, module, "cross_entropy", batch, steps, SGD)
    run = tmp_path / "run"
    process = motley.train(run, file, workers, ["train.shares=[2,1]"] if workers > 1 else [])
    if workers > 1:
        assert all(len(event["workers"]) == 2 for event in process.of("step") if event["samples"] == batch)

    optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    losses = train_in_groups(module, data["train"], plain.batches(SEED, 400, batch, steps), optimizer)
    measure("loss", plain.worst_loss(process.losses(), losses), 1e-6 if workers == 1 else 1e-5)
    weights = load_file(checkpoint(run, steps) / "model.safetensors")
    expected = module.state_dict()
    for counter in [name for name in expected if name.endswith("num_batches_tracked")]:
        assert int(weights.pop(counter)) == int(expected.pop(counter)) == steps
    measure("weights", plain.worst_weights(weights, expected), 1e-4)

    fresh = copy.deepcopy(module)
    fresh.load_state_dict(load_file(checkpoint(run, steps) / "model.safetensors"), strict=True)
    x, y = data["test"]
    output, found = plain.outputs(fresh, x), process.of("eval")[-1]
    assert round(found["accuracy"] * 100) == int((output.argmax(1) == y).sum())
    measure("loss of the evaluation", abs(found["loss"] / functional.cross_entropy(output, y).item() - 1), 1e-6)

    motley.export(run, tmp_path / "out.pt")
    script = torch.jit.load(tmp_path / "out.pt")
    assert list(script.state_dict()) == list(fresh.state_dict())
    measure("outputs", (plain.outputs(script, x) - output).abs().max().item(), 1e-6)
