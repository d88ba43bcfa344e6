"""What people write without Motley: data from IDX files, an nn.Module, parts of a training loop. Nothing here comes from the program."""

import gzip
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

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


def find_fashion():
    place = Path("/usr/share/datasets/fashion-mnist")
    if (place / "train-images-idx3-ubyte.gz").is_file():
        return place
    raise FileNotFoundError(f"Fashion-MNIST: expected in {place}; try: apt install dataset-fashion-mnist")


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
