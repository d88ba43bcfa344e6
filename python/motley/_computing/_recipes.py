"""The built-in models in this Python's torch: what adapters/torch has in C++, with the same names, initial weights and arithmetic.

A worker of theirs is that of a script (_computation.py), whose samples are in a data set of the core.
"""

import contextlib
import math
import os
import sysconfig
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from motley import _core
from motley._computing import _computation, _work
from motley._machines import _cache, _devices
from motley._models import _model, _parts, _torchscript
from motley._samples import _data
from motley._trials._trial import Found

VOCABULARY = 256
DEVIATION = 0.02

devices, facts = _devices.devices, _devices.facts


def version() -> str:
    return f"torch {torch.__version__} of this Python"


def to_be_confined() -> list[str]:
    """Before files are confined: the directories from which Python and torch load what they have not loaded yet. What they write for
    themselves goes where this process may write then: some parts of torch cannot be loaded without such a place."""
    place = str(_cache.directory() / "torch")
    with contextlib.suppress(OSError):
        os.makedirs(place, exist_ok=True)
        tempfile.tempdir = place
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return sorted({*filter(None, places), os.path.dirname(os.path.dirname(torch.__file__))})


class Cnn(nn.Module):
    """Of images [n, 1, 28, 28] in 10 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(1600, 128), nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Pooling before the ReLU gives the same values and gradients, bit for bit, for a quarter of the work. A processor convolves and
        # pools faster where channels lie last. Of one channel both orders are the same bytes, so strides have to say which it is.
        h = x.contiguous().view(-1, 1, 28, 28)
        if x.device.type == "cpu":
            h = h.as_strided(h.shape, (784, 1, 28, 1))
        h = F.relu(F.max_pool2d(self.conv1(h), 2))
        h = F.relu(F.max_pool2d(self.conv2(h), 2))
        return self.fc2(F.relu(self.fc1(h.flatten(1))))


class Mlp(nn.Module):
    def __init__(self, sizes: list[int]):
        super().__init__()
        for i, (wide, narrow) in enumerate(zip(sizes, sizes[1:], strict=False)):
            self.add_module(f"fc{i + 1}", nn.Linear(wide, narrow))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.flatten(1)
        for i, layer in enumerate(self.children()):
            h = layer(F.relu(h) if i > 0 else h)
        return h


class Linear(nn.Module):
    """nn.Linear without initial weights: who draws them would draw twice."""

    def __init__(self, wide: int, narrow: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(narrow, wide)), nn.Parameter(torch.zeros(narrow))

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return F.linear(h, self.weight, self.bias)


class Table(nn.Module):
    """The weight of an nn.Embedding, or of an nn.Linear without a bias."""

    def __init__(self, weight: nn.Parameter):
        super().__init__()
        self.weight = weight


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Linear(width, 3 * width), Linear(width, width)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        n, length, width = h.shape
        q, k, v = (part.view(n, length, self.heads, width // self.heads).transpose(1, 2) for part in self.c_attn(h).split(width, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).contiguous().view(n, length, width))


class Inner(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.c_fc, self.c_proj = Linear(width, 4 * width), Linear(4 * width, width)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return self.c_proj(F.gelu(self.c_fc(h), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width), Inner(width)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        h = h + self.attn(self.ln_1(h))
        return h + self.mlp(self.ln_2(h))


class Gpt(nn.Module):
    """A decoder-only transformer over bytes, [n, T] to logits [n, T, 256]. Names and shapes are those of nanoGPT."""

    def __init__(self, block: int, layers: int, heads: int, width: int):
        super().__init__()
        tokens, places = nn.Parameter(torch.empty(VOCABULARY, width)), nn.Parameter(torch.empty(block, width))
        blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.transformer = nn.ModuleDict({"wte": Table(tokens), "wpe": Table(places), "h": blocks, "ln_f": nn.LayerNorm(width)})
        self.lm_head = Table(tokens)
        # Each block adds to the residual stream twice, and the sum shall not grow with the number of blocks.
        residual = DEVIATION / math.sqrt(2 * layers)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.endswith("weight") and ".ln_" not in name:
                    parameter.normal_(0, residual if name.endswith("c_proj.weight") else DEVIATION)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.embedding(x.long(), self.transformer["wte"].weight) + self.transformer["wpe"].weight[: x.shape[1]]
        for block in self.transformer["h"]:  # type: ignore[union-attr]
            h = block(h)
        return F.linear(self.transformer["ln_f"](h), self.lm_head.weight)


def model_of(spec: _core.ModelSpec) -> nn.Module:
    """With its initial weights. The generator of the process stays where it stands."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(spec.seed)
        if spec.kind == "gpt-mini":
            return Gpt(*spec.gpt)
        return Mlp([math.prod(spec.sample_shape), *spec.hidden, spec.outputs]) if spec.kind == "mlp" else Cnn()


def named_of(spec: _core.ModelSpec, root: nn.Module) -> tuple[list[_model.Named], _core.Layout]:
    names = _model.named_tensors(root, {}, 0, {}, {})
    for named in names:
        named.group = spec.group_of(named.name)
    return names, _core.Layout([named.entry() for named in names])


def initial_state(spec: _core.ModelSpec) -> tuple[_core.Layout, Any, dict[str, bytes], bool, bool]:
    """(layout, weights, bytes of what is frozen, whether it acts on groups, whether it draws random numbers)."""
    if spec.kind == "torchscript":
        found = _torchscript.Inspected(spec)
        frozen = {named.name: _model.bytes_of(named.tensor) for named in found.names if named.kind == _model.FROZEN}
        return found.layout, _model.flatten(found.layout, found.names), frozen, found.acts_on_groups, found.draws
    root = model_of(spec)
    names, layout = named_of(spec, root)
    return layout, _model.flatten(layout, names), {}, False, False


def make(spec: _core.ModelSpec, train: _core.Dataset, test: _core.Dataset | None, batch: int, shuffle: bool, micro_batch: int,
         device: str, threads: int) -> Any:
    """The worker of a device. `micro_batch`: 0 means the device's default."""
    samples = Samples(train, "train", batch, shuffle), Samples(test, "test", batch, False) if test else None
    kind = ScriptWorker if spec.kind == "torchscript" else Worker
    return _devices.within_memory(lambda *where: kind(spec, *samples, micro_batch, *where))(device, threads)


class Judge:
    """Loss and score of a batch, by one forward pass."""

    def __init__(self, loss: str):
        self._loss = {"cross_entropy": F.cross_entropy, "nll": F.nll_loss, "mse": F.mse_loss}[loss]

    def loss(self, model: nn.Module, batch: Any) -> tuple[torch.Tensor, float]:
        """(mean, number of items that it is over)."""
        x, y = batch
        self._output = model(x)
        if self._loss is F.mse_loss:
            return F.mse_loss(self._output, y.view(self._output.shape)), y.numel()
        return self._loss(self._output.flatten(0, -2), y.flatten()), y.numel()

    def score(self, model: nn.Module, batch: Any) -> dict[str, Any]:
        """Of the batch whose loss was asked for before."""
        return {"right": (self._output.argmax(-1) == batch[1]).sum()}


class Worker(_computation.ModelComputation):
    counts_right = True

    def __init__(self, spec: _core.ModelSpec, train: "Samples", test: "Samples | None", micro_batch: int, device: str, threads: int):
        accelerator = not device.startswith("cpu")
        if accelerator:  # what is not the same in every run
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        judge = Judge(spec.loss)
        root, names, self.layout, found = self._build(spec)
        classes = spec.loss != "mse"
        parts = _parts.together(root, judge.loss, judge.score if classes else None)
        scores = ["right"] if classes and test else []
        work = _work.Work(parts, train, test, "fp32", names, self.layout, found, scores, b"", set(), {}, {}, unused_matter=False)
        super().__init__(work, parts, device, threads, looked_at=False)
        self.micro_batch = micro_batch or spec.micro_batch(accelerator)

    def _build(self, spec: _core.ModelSpec) -> tuple[nn.Module, list[_model.Named], _core.Layout, Found]:
        root = model_of(spec)
        return root, *named_of(spec, root), Found()


class ScriptWorker(Worker):
    """Of a TorchScript file, whose code switches modes by itself, and looks for buffers where it has them."""

    begins_early = False  # what its interpreter calls is not seen by Python

    def __init__(self, spec: _core.ModelSpec, *more: Any):
        super().__init__(spec, *more)
        self._script.follow()
        if self._work.acts_on_groups:
            self._group = self.group = self.micro_batch = spec.group_samples

    def _build(self, spec: _core.ModelSpec) -> tuple[nn.Module, list[_model.Named], _core.Layout, Found]:
        found = _torchscript.Inspected(spec)
        self._script = found.script
        return found.script, found.names, found.layout, Found(draws=("torch",) if found.draws else (), mixes=found.acts_on_groups)

    def _at_once(self) -> int:
        most: int = self._task.micro_batch
        return self._group if self._group > 1 else most

    def _set_mode(self, training: bool) -> None:
        if self._mode is not training:
            self._script.set_training(training)
            self._mode = training

    def _prepare_probe(self) -> None:
        self._script.set_training(self._work.acts_on_groups)
        self._mode = None


class Samples(_data.BatchSource):
    """A data set of the core, by numbers."""

    def __init__(self, dataset: _core.Dataset, name: str, batch: int, shuffles: bool):
        self.name, self.dataset, self.collate = name, Numbers(), Batches(dataset)
        self.samples = self.size = dataset.size
        self.batch_size, self.shuffles, self.drops_last, self.pinned = batch, shuffles, False, torch.cuda.is_available()
        self.orders, self.numbers, self.readers, self.draws = None, None, None, ()

    @property
    def steady(self) -> bool:
        return True


class Numbers:
    """A data set whose samples are their numbers: they are read when they are put together."""

    def __getitems__(self, numbers: list[int]) -> list[int]:
        return numbers


class Batches:
    def __init__(self, dataset: _core.Dataset):
        self._set, self._shape, self._targets = dataset, list(dataset.sample_shape), dataset.target_elements

    def __call__(self, numbers: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """float32 [n, *shape of a sample], and classes int64 [n] or [n, targets], or values float32 [n, targets]."""
        count = len(numbers)
        x = torch.empty([count, *self._shape])
        self._set.gather(numbers, x.view(-1))
        if self._set.classes:
            y = torch.empty(count * self._targets, dtype=torch.int64)
            self._set.gather_classes(numbers, y)
            return x, y if self._targets == 1 else y.view(count, self._targets)
        values = torch.empty(count * self._targets)
        self._set.gather_values(numbers, values)
        return x, values.view(count, self._targets)


def with_weights(spec: _core.ModelSpec, weights: bytes) -> nn.Module:
    """Of a run's checkpoint: float32 [flat_elements]. Errors: it is of another model."""
    root = model_of(spec)
    names, layout = named_of(spec, root)
    if len(weights) != 4 * layout.flat_elements:
        raise _parts.Error("the weights are of another model", "use the model and the checkpoint of the same run", "mismatch")
    _model.unflatten(layout, names, torch.frombuffer(bytearray(weights), dtype=torch.float32), 0)
    return root.eval()


def export(spec: _core.ModelSpec, layout: _core.Layout, weights: bytes, frozen: dict[str, bytes], step: int, path: str) -> None:
    """For torch.jit.load."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    if spec.kind == "torchscript":
        _torchscript.restored(spec, layout, weights, frozen, step).save(path)
        return
    root = with_weights(spec, weights)
    sample = torch.zeros([1, *spec.sample_shape])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer torches advise torch.export
        torch.jit.script(root, example_inputs=[(sample,)]).save(path)


def logits(spec: _core.ModelSpec, weights: bytes) -> Callable[[bytes], list[float]]:
    """Of the byte that follows a window of bytes."""
    root = with_weights(spec, weights)

    def follow(window: bytes) -> list[float]:
        with torch.no_grad():
            found: list[float] = root(torch.tensor([list(window)]))[0, -1].tolist()
        return found

    return follow
