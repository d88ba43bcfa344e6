"""TorchScript files in this Python's torch: what adapters/torch makes of them, with the same layout and arithmetic, and the same refusals.

They run in the plain interpreter: the optimising executors fuse differently from run to run, which costs the last bits.
"""

import dataclasses
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from motley import _core
from motley._errors import Error
from motley._models import _model

_C: Any = torch._C  # more than its stubs say
SAMPLES = 2  # of a trial; BatchNorm refuses one
SEED = 1
STATISTIC = 65536.0  # far above what a batch gives, so that rounding does not blur the momentum
COUNT = 99  # num_batches_tracked in the trial that looks for cumulative averages
MIXES = ("batch_norm",)
DRAWS = ("dropout", "aten::rand", "bernoulli", "aten::normal", "uniform_", "rrelu", "multinomial", "scaled_dot_product_attention")
HOW_TO_WRITE = "write the file with torch.jit.script(model).save(path)"
MEAN, VAR, COUNTER = "running_mean", "running_var", "num_batches_tracked"


@dataclasses.dataclass
class Held:
    """A tensor of the file, where its code finds it."""

    name: str  # as in state_dict
    owner: Any  # the module that has it, and as what
    own_name: str
    tensor: torch.Tensor
    buffer: bool
    alias_of: str = ""

    def ends_with(self, part: str) -> bool:
        return self.own_name == part


class Script(nn.Module):
    """What a file holds. Its tensors are parameters and buffers of this module too, which has no code of its own."""

    def __init__(self, file: bytes):
        super().__init__()
        warnings.simplefilter("ignore")  # what a file warns of would go to the screen as it stands; this process runs nothing of the user's
        self.code = _load(file)
        self.held = list(self._tensors())
        kinds = set(_operators(self.code._get_method("forward").graph))
        self.mixes = any(part in kind for kind in kinds for part in MIXES)
        self.draws = any(part in kind for kind in kinds for part in DRAWS)

    def _tensors(self) -> Iterator[Held]:
        known: list[Held] = []
        for prefix, owner in _modules(self.code):
            for buffer, held in ((False, _C.ParameterDict(owner)), (True, _C.BufferDict(owner))):
                for own_name, tensor in list(held.items()):
                    one = Held(prefix + own_name, owner, own_name, tensor, buffer)
                    earlier = next((each for each in known if _same(each.tensor, tensor)), None)
                    if earlier is None:
                        # It becomes an nn.Parameter, and no other one is made: the code may have this tensor in a list, too.
                        tensor._is_param = not buffer
                        known.append(one)
                    else:
                        if earlier.tensor is not tensor:  # loading gives tied parameters one storage but two tensors: two gradients
                            owner.setattr(own_name, earlier.tensor)
                        one.tensor, one.alias_of = earlier.tensor, earlier.name
                    self._show(one)
                    yield one

    def _show(self, held: Held) -> None:
        """In state_dict(), under its name."""
        module: nn.Module = self
        *path, name = held.name.split(".")
        for part in path:
            if part not in module._modules:
                module._modules[part] = nn.Module()
            module = module._modules[part]  # type: ignore[assignment]
        if isinstance(held.tensor, nn.Parameter):
            module._parameters[name] = held.tensor
        else:
            module._buffers[name] = held.tensor

    def follow(self) -> None:
        """Its code finds the buffers that this module has now."""
        now = self.state_dict(keep_vars=True)
        for each in self.held:
            each.tensor = now[each.alias_of or each.name]
            each.owner.setattr(each.own_name, each.tensor)

    def set_training(self, on: bool) -> None:
        for _, module in _modules(self.code):
            if module.hasattr("training"):
                module.setattr("training", on)

    def forward(self, x: torch.Tensor) -> Any:
        with torch.jit.optimized_execution(False):
            return self.code.forward(x)


def _load(file: bytes) -> Any:
    """Errors: it is none, it may do more than compute, it has no forward()."""
    if not file:
        raise Error("a TorchScript model needs a file, but there is none", HOW_TO_WRITE, "input")
    rules = _core.ScriptRules()
    rules.check_start(file[:4])
    try:
        archive = _C.PyTorchFileReader(io.BytesIO(file))
        for record in archive.get_all_records():
            if rules.check_record(record, archive.get_record_size(record)):
                rules.check_text(archive.get_record(record))
        unit = _C.CompilationUnit()
        code = _C.import_ir_module_from_buffer(unit, file, torch.device("cpu"), {}, False)
        for function in unit.get_functions():
            _look_at_uses(function, rules)
        rules.check_uses()
    except Error:
        raise
    except RuntimeError as error:
        _core.raise_unreadable_script(len(file), str(error))
    if not code._has_method("forward"):
        raise Error("the TorchScript module has no method forward(x)", HOW_TO_WRITE, "input")
    return code


def _look_at_uses(function: Any, rules: Any) -> None:
    try:
        graph = function.graph
    except RuntimeError:
        rules.calls_library()
        return
    for node in _nodes(graph):
        rules.uses_operator(node.kind())
        for value in (*node.inputs(), *node.outputs()):
            rules.uses_type(str(value.type()))


def _nodes(block: Any) -> Iterator[Any]:
    waiting = [block]
    while waiting:
        for node in waiting.pop().nodes():
            yield node
            waiting.extend(node.blocks())


def _operators(graph: Any) -> Iterator[str]:
    """Of a function and all that it calls."""
    inlined = graph.copy()
    _C._jit_pass_inline(inlined)
    for node in _nodes(inlined):
        yield node.kind()


def _modules(code: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    yield prefix, code
    for name, module in _C.ModuleDict(code).items():
        yield from _modules(module, f"{prefix}{name}.")


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a is b or (a.numel() > 0 and a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride()
                      and a.dtype == b.dtype)


class TorchScriptTrial:
    """Runs a model on a few made-up samples, always the same."""

    def __init__(self, spec: _core.ModelSpec, script: Script):
        self._spec, self._script = spec, script
        self._seed()
        self._x = torch.rand([SAMPLES, *spec.sample_shape])
        self._saved = [each.tensor.detach().clone() if each.buffer else None for each in script.held]

    def _seed(self) -> None:
        torch.default_generator.manual_seed(SEED)

    def forward(self) -> Any:
        self._seed()
        return self._script(self._x)

    def backward(self) -> None:
        """Leaves gradients behind. Errors: samples or targets do not fit."""
        spec = self._spec
        try:
            output = self.forward()
        except RuntimeError as error:
            why = str(error).rstrip("\n").rpartition("\n")[2]
            raise Error(f"the model does not take samples of {list(self._x.shape)}: {why}",
                        "check that the model was made for this data set, and takes float32", "mismatch") from None
        if not isinstance(output, torch.Tensor):
            raise Error(f"the model gives a {type(output).__name__}, expected a tensor", HOW_TO_WRITE, "mismatch")
        classes, outputs = spec.loss != "mse", spec.outputs
        shape = [SAMPLES, spec.targets] if spec.targets > 1 else [SAMPLES]
        found = list(output.shape)
        if classes:
            fits = len(found) == len(shape) + 1 and found[-1] >= outputs and found[:-1] == shape
            needs = f"[{', '.join(map(str, shape))}, C] with C at least {outputs}"
        else:
            fits, needs = output.numel() == SAMPLES * outputs, f"2 times {outputs}"
        if not fits:
            raise Error(f"the model gives an output of {found} for {SAMPLES} samples; loss '{spec.loss}' needs {needs}",
                        "check model.loss, and that the model was made for this data set", "mismatch")
        if not output.requires_grad:
            raise Error("no parameter of the model has a gradient, so there is nothing to train",
                        "save the model with parameters that require gradients", "input")
        target = torch.zeros(shape, dtype=torch.int64) if classes else torch.zeros_like(output)
        if classes:
            output, target = output.flatten(0, -2), target.flatten()
        losses: dict[str, Callable[..., torch.Tensor]] = {"cross_entropy": F.cross_entropy, "nll": F.nll_loss, "mse": F.mse_loss}
        losses[spec.loss](output, target, reduction="sum").backward()

    def changed(self, i: int) -> bool:
        saved = self._saved[i]
        return saved is not None and _model.bytes_of(self._script.held[i].tensor) != _model.bytes_of(saved)

    @torch.no_grad()
    def restore(self) -> None:
        for each, saved in zip(self._script.held, self._saved, strict=True):
            if saved is not None:
                each.tensor.copy_(saved)


@torch.no_grad()
def _momenta(script: Script, trial: TorchScriptTrial) -> list[float]:
    """Of each running statistic: what share of the old value is gone after one forward pass. Errors: one is a cumulative average."""

    def observe(start: float, count: int) -> list[torch.Tensor | None]:
        for each in script.held:
            if each.buffer and each.ends_with(COUNTER):
                each.tensor.fill_(count)
            elif each.buffer and (each.ends_with(MEAN) or each.ends_with(VAR)):
                each.tensor.fill_(start)
        trial.forward()
        return [each.tensor.clone() if each.buffer and (each.ends_with(MEAN) or each.ends_with(VAR)) else None for each in script.held]

    found = []
    for each, zero, one, late in zip(script.held, observe(0, 0), observe(STATISTIC, 0), observe(0, COUNT), strict=True):
        if zero is None or one is None or late is None or zero.numel() == 0:
            found.append(0.0)
            continue
        kept = (one - zero).double().mean().item() / STATISTIC
        # Six digits: what float rounding leaves exact, so that all machines find the same number.
        found.append(torch.tensor(round((1 - kept) * 1e6) / 1e6).item())
        if not torch.allclose(zero, late):
            raise Error(f"{each.name} is a cumulative average (momentum=None), which is not supported",
                        "give the BatchNorm layers a momentum, e.g. 0.1", "input")
    trial.restore()
    return found


def _kind(held: list[Held], i: int, moves: bool) -> int:
    one = held[i]
    if one.alias_of:
        return _model.ALIAS
    if not one.buffer:
        return _model.TRAINED if one.tensor.grad is not None else _model.FROZEN
    if moves and one.ends_with(MEAN) and i + 1 < len(held) and held[i + 1].ends_with(VAR):
        return _model.RUNNING_MEAN
    if moves and one.ends_with(VAR) and i > 0 and held[i - 1].ends_with(MEAN):
        return _model.RUNNING_VAR
    return _model.COUNTER if moves and one.ends_with(COUNTER) else _model.FROZEN


class Inspected:
    """A file's model and its layout. Which parameters get a gradient, how BatchNorm averages and what else changes is observed, not read
    from the code: it works for every way a model can be written."""

    def __init__(self, spec: _core.ModelSpec):
        self.script = script = Script(spec.file)
        script.set_training(True)
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            trial = TorchScriptTrial(spec, script)
            trial.backward()
            self.names, entries = self._look(spec, trial)
        self.layout = _core.Layout(entries)
        for each in script.held:
            each.tensor.grad = None
        self.draws, self.acts_on_groups = script.draws, script.draws or script.mixes

    def _look(self, spec: _core.ModelSpec, trial: TorchScriptTrial) -> tuple[list[_model.Named], list[Any]]:
        held = self.script.held
        changed = [trial.changed(i) for i in range(len(held))]
        trial.restore()
        momenta = _momenta(self.script, trial) if any(each.buffer and each.ends_with(MEAN) for each in held) else [0.0] * len(held)
        names, entries = [], []
        for i, each in enumerate(held):
            pair = i - 1 if i > 0 and each.ends_with(VAR) else i
            named = _model.Named(each.name, each.tensor, _kind(held, i, changed[pair] or each.ends_with(COUNTER)),
                                 spec.group_of(each.name), alias_of=each.alias_of)
            if each.tensor.dtype not in _model.DTYPES:
                raise Error(f"{each.name} has the type {each.tensor.dtype}, which is not supported", "save the model in float32", "input")
            content = 0
            if named.kind in (_model.RUNNING_MEAN, _model.RUNNING_VAR):
                named.momentum = momenta[pair]
                if named.momentum <= 0:
                    raise Error(f"{each.name} changes, but not as a moving average", "use torch's BatchNorm layers", "input")
            elif named.kind == _model.FROZEN:
                content = _core.frozen_hash(_model.bytes_of(each.tensor))
                if changed[i]:
                    raise Error(f"the forward pass changes the buffer {each.name}; only BatchNorm's statistics may change",
                                "remove the buffer from the model, or make it a constant", "input")
            elif named.kind == _model.COUNTER and each.tensor.numel() > 0:  # of a model that was trained before
                content = named.first = int(each.tensor.flatten()[0])
            names.append(named)
            entries.append((each.name, list(each.tensor.shape), _model.DTYPES[each.tensor.dtype], named.kind, named.group, named.momentum,
                            each.alias_of, content))
        return names, entries


def restored(spec: _core.ModelSpec, layout: _core.Layout, weights: bytes, frozen: dict[str, bytes], step: int) -> Any:
    """The file's code with the state of a checkpoint. Errors: the layout is of another model."""
    script = Script(spec.file)
    found = [(each.name, list(each.tensor.shape), each.alias_of) for each in script.held]
    entries = layout.entries
    wanted = [(name, shape, alias_of) for name, shape, _, _, _, _, alias_of, _ in entries]
    if found != wanted:
        pairs = zip(found, wanted, strict=False)
        other = next((f"{a[0]} and {b[0]}" for a, b in pairs if a != b), f"{len(found)} and {len(wanted)} tensors")
        raise Error(f"the checkpoint is of another model: they differ in {other}", "use the model and the checkpoint of the same run",
                    "mismatch")
    flat = torch.frombuffer(bytearray(weights), dtype=torch.float32)
    with torch.no_grad():
        for entry, offset, elements in layout.placements:
            tensor = script.held[entry].tensor
            tensor.copy_(flat.narrow(0, offset, elements).view(tensor.shape))
        for each, (name, _, _, kind, _, momentum, _, content) in zip(script.held, entries, strict=True):
            if kind == _model.COUNTER:
                each.tensor.fill_(content + step * (int(momentum) or 1))
            kept = frozen.get(name) if kind == _model.FROZEN else None
            if kept is None:
                continue
            if len(kept) != len(_model.bytes_of(each.tensor)):
                raise Error(f"{name} has {len(kept)} bytes, expected {len(_model.bytes_of(each.tensor))}",
                            "use the checkpoint of this model", "mismatch")
            if kept:
                each.tensor.copy_(torch.frombuffer(bytearray(kept), dtype=each.tensor.dtype).view(each.tensor.shape))
    script.set_training(False)
    return script.code
