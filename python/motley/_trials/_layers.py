"""What runs of a script with a model of torch, for other machines to compare: see _compared.py."""

import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from motley import _state
from motley._samples import _contents, _data, _shards
from motley._trials import _compared, _spots, _traces, _values
from motley._trials._own import is_own_class

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

ELEMENTS_MAX = 1 << 20  # of all tensors that are compared


def words(roots: Mapping[str, Any], apart: Iterable[torch.Tensor], loop: types.FrameType | None = None) -> str:
    """Lines for Ready. roots: by name, as Traces has them. apart: tensors that are compared otherwise. loop: the frame of a script that
    iterates over its leases."""
    kept = list(apart)
    return _compared.words(roots, lambda used: _Walk(used, kept), loop)


class _Walk(_compared.Walk):
    def __init__(self, used: set[str], apart: list[torch.Tensor]):
        super().__init__(used)
        self._met.update({id(tensor): tensor for tensor in apart})
        self._of_data = False  # whose tensors are compared as samples
        self._left = ELEMENTS_MAX

    def visit_root(self, name: str, root: Any) -> None:
        if not isinstance(root, _data.BatchSource):
            return super().visit_root(name, root)
        self._of_data = True
        self._visit(root.loader.dataset, f"{name}.dataset")
        self._of_data = False
        self._bind(f"{name}.collate_fn", root.collate, " collate_fn")

    def _word(self, value: Any) -> str | None:
        if isinstance(value, nn.Parameter) or (self._of_data and _is_array(value)):
            return None
        return self._of_tensor(value) if _is_array(value) else super()._word(value)

    def _of_tensor(self, value: Any) -> str | None:
        """Floating-point numbers may differ in their last bits."""
        size = value.numel() if isinstance(value, torch.Tensor) else value.size
        if id(value) in self._met or size > self._left or getattr(value, "is_meta", False):
            return None
        self._left -= size
        try:
            return f"#0:{_contents.Contents(value).text}"
        except (RuntimeError, TypeError, ValueError, NotImplementedError):  # of a kind that has no values to look at
            return None

    def _visit(self, value: Any, what: str, depth: int = 0) -> None:
        if isinstance(value, (*_spots.PLAIN, torch.Tensor, torch.Generator, torch.optim.Optimizer, _state.HeadTensors)):
            return
        if isinstance(value, nn.Module) and id(value) not in self._met:
            self._visit_modules(value, what)
        elif isinstance(value, _shards.Shards):  # what it has open is not the script's
            self._visit(value.sources, f"{what}.sources")
            self._bind(f"{what}.map", value.map, " map")
        elif isinstance(value, torch.utils.data.DataLoader):
            self._visit(value.dataset, f"{what}.dataset", depth)
        else:
            super()._visit(value, what, depth)

    def _visit_modules(self, root: nn.Module, what: str) -> None:
        """A model: which layers there are, what is set of them, and the code of those that are the script's own."""
        layers: dict[str, list[str]] = {}
        for path, module, tag in _layers(root, "", ""):
            if id(module) in self._met:
                continue
            self._met[id(module)] = module
            if tag is not None:
                layers.setdefault(tag, []).append(f"{path}:{type(module).__name__}:{module.training}")
            if is_own_class(type(module)):
                self._visit_object(module, what, 0)
            elif tag is not None:
                self._visit_layer(module, tag)
            for each in (*module._forward_hooks.values(), *module._forward_pre_hooks.values(), *module._backward_hooks.values()):
                self._bind(f"a hook of {type(module).__name__}", each, " hook")
            for name, tensor in (*module._parameters.items(), *module._buffers.items()):  # of modules beside the model
                for each in ((getattr(tensor, "_backward_hooks", None) or {}).values()):
                    self._bind(f"a hook of {type(module).__name__}.{name}", each, " hook")
                if tensor is not None and not self._of_data:
                    self._add(f"{type(module).__name__}.{name} in {what}", self._of_tensor(tensor), f".{name}")
        for tag, found in layers.items():
            self._add(f"the layers of {what}{tag}", f"#0:{_values.hashed(' '.join(found))}")

    def _visit_layer(self, module: nn.Module, tag: str) -> None:
        """Of a package."""
        kind = type(module)
        for name, each in sorted(module.__dict__.items()):
            if name in _traces.OWN_OF_MODULES or name.startswith("_") or name in _compared.written_by(kind) or _values.of_machine(name):
                continue
            word = None if _is_array(each) else _values.word(each)
            self._add(f"{kind.__name__}.{name}{tag}", word, f".{name}")
            if word is None:
                self._tell(f"{kind.__name__}.{name}{tag}", _compared.named(each), f".{name}")
                self._visit(each, f"{kind.__name__}.{name}", 1)


def _is_array(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (numpy is not None and isinstance(value, numpy.ndarray))


def _layers(module: nn.Module, path: str, tag: str | None) -> Iterator[tuple[str, nn.Module, str | None]]:
    """(path, module, of which version of which package: "" for torch's and the script's own, None for one that is not known). All that a
    package's module holds has its version. A compiled module is what was compiled."""
    inside = module._modules.get("_orig_mod") if type(module).__name__ == _compared.COMPILED else None
    if inside is not None:
        yield from _layers(inside, path, tag)
        return
    if is_own_class(type(module)):
        tag = ""
    elif (version := _compared.version_of(type(module))) != "":
        tag = version
    yield path, module, tag
    for name, child in module._modules.items():
        if child is not None:
            yield from _layers(child, f"{path}.{name}", tag)
