"""What people write without Motley: data from IDX files, nn.Modules, a training loop. Nothing here comes from the program."""

import gzip
import math
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from sample_order import sample_order

MEAN, STD = 0.2860, 0.3530
FILES = {"train": "train", "test": "t10k"}


class Cnn(nn.Module):
    """The usual CNN of two convolutions."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(1600, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        # Channels lie last, as the recipe has them on a processor: where they lie first torch's kernels add in another order.
        if not x.is_cuda:
            x = x.to(memory_format=torch.channels_last)
        x = functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 256)
        self.fc2 = nn.Linear(256, 128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x.flatten(1))))))


MODULES = {"fashion-cnn": Cnn, "mlp": Mlp}


class GroupStatistics:
    """Sees what each BatchNorm layer is given and moves its running statistics once a step, merged by sample count."""

    def __init__(self, module):
        self.layers = {layer: [] for layer in module.modules() if isinstance(layer, nn.BatchNorm1d)}
        for layer in self.layers:
            # Their own running statistics move once a group, so they work on copies.
            layer.mean, layer.var = layer.running_mean.clone().double(), layer.running_var.clone().double()
            layer.register_forward_pre_hook(self.note)

    def note(self, layer, inputs):
        if layer.training:
            x = inputs[0].detach().double()
            rows = x.movedim(1, 0).flatten(1)
            self.layers[layer].append((x.shape[0], rows.mean(1), rows.var(1, unbiased=True)))

    def step(self):
        for layer, seen in self.layers.items():
            total = sum(count for count, _, _ in seen)
            mean = sum(count * mean for count, mean, _ in seen) / total
            var = sum(count * (var + mean**2) for count, mean, var in seen) / total - mean**2
            layer.mean = (1 - layer.momentum) * layer.mean + layer.momentum * mean
            layer.var = (1 - layer.momentum) * layer.var + layer.momentum * var
            seen.clear()

    def finish(self, steps):
        for layer in self.layers:
            layer.running_mean.copy_(layer.mean)
            layer.running_var.copy_(layer.var)
            layer.num_batches_tracked.fill_(steps)


def find_fashion():
    places = [Path("/usr/share/datasets/fashion-mnist"), Path.home() / ".cache/motley/fashion-mnist"]
    for place in places:
        if (place / "train-images-idx3-ubyte.gz").is_file():
            return place
    raise FileNotFoundError(f"Fashion-MNIST: expected in {places[0]} or {places[1]}; `motley train fashion-cnn` fetches it")


def read_idx(directory, name):
    raw = gzip.decompress((directory / f"{name}.gz").read_bytes())
    shape = np.frombuffer(raw, dtype=">u4", count=raw[3], offset=4)
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * raw[3]).reshape(shape.tolist())


def load_idx(directory):
    parts = {}
    for part, name in FILES.items():
        images = torch.from_numpy(read_idx(directory, f"{name}-images-idx3-ubyte").copy())
        labels = torch.from_numpy(read_idx(directory, f"{name}-labels-idx1-ubyte").astype(np.int64))
        parts[part] = (((images.float() / 255 - MEAN) / STD).unsqueeze(1), labels)
    return parts


def write_idx(source, directory, counts):
    """The first samples of each part, uncompressed."""
    for part, name in FILES.items():
        for kind in ("images-idx3", "labels-idx1"):
            values = read_idx(source, f"{name}-{kind}-ubyte")[: counts[part]]
            header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
            (directory / f"{name}-{kind}-ubyte").write_bytes(header + values.tobytes())


class Recipe:
    """One way to optimise, as torch objects and as settings of the program."""

    def __init__(self, make, settings=(), clip=0.0, schedule=None, clip_by_previous=False):
        self.make, self.settings, self.clip, self.schedule = make, list(settings), clip, schedule
        self.clip_by_previous = clip_by_previous


def warmup_then_cosine(warmup, steps, least):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return least + (1 - least) * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2

    return factor


def cosine(optimizer):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)


def warmup_and_cosine(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_then_cosine(10, 100, 0.1))


# name: (torch's optimizer, its arguments, kind and keys of the program, clipping, schedule)
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {}, ["kind=sgd"], 0, None),
    "nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 5e-4},
                 ["kind=sgd", "momentum=0.9", "nesterov=true", "weight_decay=0.0005"], 0, None),
    "adam": (torch.optim.Adam, {}, ["kind=adam"], 0, None),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.05, "betas": (0.9, 0.98)},
              ["kind=adamw", "weight_decay=0.05", "beta2=0.98"], 0, None),
    "clip-cosine": (torch.optim.SGD, {"momentum": 0.9}, ["kind=sgd", "momentum=0.9"], 2.0, cosine),
    "clip-previous": (torch.optim.SGD, {"momentum": 0.9}, ["kind=sgd", "momentum=0.9"], 1.0, None),
    "clip-warmup-cosine": (torch.optim.AdamW, {"weight_decay": 0.01}, ["kind=adamw", "weight_decay=0.01"], 3.0, warmup_and_cosine),
}
SCHEDULES = {None: ["kind=constant"], cosine: ["kind=cosine"], warmup_and_cosine: ["kind=cosine", "warmup_steps=10", "min_factor=0.1"]}
# High enough to learn, low enough for a sum in another order to stay a matter of rounding: the CNN is chaotic, because
# max-pooling passes rounding on in jumps, and the faster it learns the sooner it jumps. test_pytorch_agrees_with_itself
# measures that with the very split of the runs; with another one, a jump can come at a lower rate, too.
RATES = {
    "mlp": {"sgd": 0.1, "nesterov": 0.02, "adam": 1e-3, "adamw": 1e-3, "clip-cosine": 0.05, "clip-previous": 0.01,
            "clip-warmup-cosine": 2e-3},
    "fashion-cnn": {"sgd": 0.02, "nesterov": 0.005, "adam": 2e-4, "adamw": 1e-4, "clip-cosine": 0.005, "clip-warmup-cosine": 2e-4},
}


def recipe(model, name, rate=None, fused=False):
    """fused: torch's fused optimizer, another implementation of the same formulas (see test_parity.py)."""
    kind, arguments, keys, clip, schedule = OPTIMIZERS[name]
    rate = rate or RATES[model][name]
    settings = [f"optimizer.{key}" for key in keys] + [f"schedule.{key}" for key in SCHEDULES[schedule]]
    settings += [f"optimizer.lr={rate}", f"train.clip_norm={clip}"]
    previous = name == "clip-previous"
    settings += ["train.clip_norm_of=previous"] if previous else []
    return Recipe(lambda parameters: kind(parameters, lr=rate, fused=fused, **arguments), settings, clip, schedule, previous)


def batches(seed, size, batch, steps):
    """The samples of each step: epoch after epoch, the last batch of an epoch as short as it comes."""
    per_epoch = -(-size // batch)
    for step in range(steps):
        epoch, first = step // per_epoch, step % per_epoch * batch
        yield torch.from_numpy(sample_order(seed, epoch, size, range(first, min(first + batch, size))))


class Loop:
    """What a plain loop leaves: the loss of every step, the module, and how often clipping acted."""

    def __init__(self):
        self.losses, self.module, self.clipped = [], None, 0


def gradients_of_parts(module, parts, loss, total):
    """Leaves the mean gradient of a batch that is summed part by part; returns its mean loss."""
    sums, mean = None, 0.0
    for x, y in parts:
        module.zero_grad()
        part = loss(module(x), y, reduction="sum")
        part.backward()
        mean += part.item() / total
        gradients = [parameter.grad.clone() for parameter in module.parameters()]
        sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
    for parameter, gradient in zip(module.parameters(), sums):
        parameter.grad = gradient / total
    return mean


def clip(parameters, limit, norm_before):
    """Clips the gradients by their own norm or, where one is given, by that of the step before: (their own norm, whether that acted)."""
    parameters = list(parameters)
    if norm_before is None:
        norm = nn.utils.clip_grad_norm_(parameters, limit)
        return norm, bool(norm > limit)
    norm = nn.utils.get_total_norm([parameter.grad for parameter in parameters])
    factor = limit / (norm_before + 1e-6)
    if factor < 1:
        for parameter in parameters:
            parameter.grad.mul_(factor)
    return norm, bool(factor < 1)


def train(module, recipe, data, picks, loss=functional.cross_entropy, parameters=None, sizes=None):
    """A training loop as everybody writes it; with sizes, a batch is summed in parts of these sizes."""
    loop = Loop()
    loop.module = module.train()
    x, y = data
    norm_before = None
    optimizer = recipe.make(module.parameters() if parameters is None else parameters)
    scheduler = recipe.schedule(optimizer) if recipe.schedule else None
    for pick in picks:
        optimizer.zero_grad()
        if sizes:
            mean = gradients_of_parts(module, [(x[part], y[part]) for part in pick.split(list(sizes))], loss, len(pick))
        else:
            mean = loss(module(x[pick]), y[pick])
            mean.backward()
            mean = mean.item()
        if recipe.clip:
            norm, acted = clip(module.parameters(), recipe.clip, norm_before)
            loop.clipped += acted
            norm_before = norm if recipe.clip_by_previous else None
        optimizer.step()
        if scheduler:
            scheduler.step()
        loop.losses.append(mean)
    return loop


@torch.no_grad()
def outputs(module, x, batch=256):
    module.eval()
    return torch.cat([module(part) for part in x.split(batch)])


def worst_loss(found, expected):
    """Largest relative difference between losses by step and the plain loop's."""
    found = found if isinstance(found, dict) else dict(enumerate(found))
    assert sorted(found) == list(range(len(expected))), "expected every step exactly once"
    return max(abs(found[step] - loss) / abs(loss) for step, loss in enumerate(expected))


def worst_weights(found, expected):
    """Largest distance of a tensor from its counterpart, relative to that one's length."""
    assert found.keys() == expected.keys()
    return max(
        ((found[name].double() - expected[name].double()).norm() / expected[name].double().norm().clamp(min=1e-12)).item()
        for name in expected)
