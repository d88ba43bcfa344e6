"""What a Lightning module has of its own, and what of it a run would not do as a Trainer does."""

import dis
import inspect
import types
from collections.abc import Iterator
from typing import Any

from torch import nn

from motley._errors import Error

LIBRARIES = ("lightning", "pytorch_lightning", "lightning_fabric", "torch")
BASE = "LightningModule"

EACH_STEP = "motley.Run(..., on_step=lambda model, step: ...), which is called after each step"
BODY = "the body of `for epoch in run.epochs(n):`, which runs after each epoch and its evaluation"
IN_STEP = "do it in training_step, or in the data set"
# Hooks by name, with what to do instead.
HOOKS = {
    "backward": "return the loss from training_step; gradients by hand are for run.leases()",
    "configure_callbacks": "motley.Run(..., callbacks=[...], keep_best=..., patience=...)",
    "configure_gradient_clipping": "clip_norm=...",
    "configure_sharded_model": "build the layers in __init__ or configure_model",
    "lr_scheduler_step": "a scheduler of torch.optim.lr_scheduler, or run.set_lr() in the body of the epochs",
    "on_after_backward": EACH_STEP,
    "on_after_batch_transfer": IN_STEP,
    "on_before_backward": "do it in training_step, with the loss that it returns",
    "on_before_batch_transfer": IN_STEP,
    "on_before_optimizer_step": EACH_STEP,
    "on_before_zero_grad": EACH_STEP,
    "on_fit_end": "do it behind the loop over run.epochs()",
    "on_fit_start": "do it before motley.lightning.Run(...)",
    "on_train_batch_end": EACH_STEP,
    "on_train_batch_start": IN_STEP,
    "on_train_end": "do it behind the loop over run.epochs()",
    "on_train_epoch_end": BODY,
    "on_train_epoch_start": f"{BODY}; training_step may ask for `epoch`",
    "on_train_start": "do it before motley.lightning.Run(...)",
    "on_validation_batch_end": "do it in validation_step",
    "on_validation_batch_start": "do it in validation_step",
    "on_validation_end": BODY,
    "on_validation_epoch_end": f"self.log means in validation_step; {BODY}",
    "on_validation_epoch_start": BODY,
    "on_validation_model_eval": "set modes before the run; each module is evaluated in evaluation mode",
    "on_validation_model_train": "set modes before the run; they are put back after each evaluation",
    "on_validation_model_zero_grad": "leave it out: an evaluation leaves no gradients",
    "on_validation_start": BODY,
    "optimizer_step": "an optimizer of torch.optim; what is done beside it, by on_step=",
    "optimizer_zero_grad": "leave it out: every step begins with gradients of zero",
    "tbptt_split_batch": "give samples the length that is to be trained on",
    "training_epoch_end": BODY,
    "training_step_end": "return the loss from training_step",
    "transfer_batch_to_device": "give the batch a method to(device), or let collate_fn return tuples, lists and dictionaries of tensors",
    "validation_epoch_end": f"self.log means in validation_step; {BODY}",
    "validation_step_end": "do it in validation_step",
}

BY_NAME = "ask for it by name: def training_step(self, batch, batch_idx, {0}=1); a run gives {0} from 1 on"
MANUAL = "one optimizer, which configure_optimizers returns; steps by hand are for run.leases()"
PARTS = "leave it out: training_step sees a part of the batch, and a run adds up what the parts give"
# Attributes of self that only a Trainer makes true.
ATTRIBUTES = {
    "all_gather": PARTS, "current_epoch": BY_NAME.format("epoch"), "global_rank": PARTS, "global_step": BY_NAME.format("step"),
    "local_rank": PARTS, "logger": "motley.Run(..., callbacks=[...])", "loggers": "motley.Run(..., callbacks=[...])",
    "lr_schedulers": MANUAL, "manual_backward": MANUAL, "optimizers": MANUAL, "print": "print() in the body of the epochs",
    "toggle_optimizer": MANUAL, "trainer": "give the module what it needs to know by its constructor",
}
LOOKED_AT = ("training_step", "validation_step", "configure_optimizers", "configure_model", "setup", "forward")
INDEXED = ("training_step", "validation_step")


def _no_index(*_: Any) -> Any:
    raise Error("batch_idx: the module looks at it, and in a run a batch has none: every machine computes another part of it",
                "leave batch_idx alone; training_step may ask for `step` by name")


OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor")
UNARY = ("eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "int", "index", "float", "neg", "pos", "abs", "invert", "round", "str",
         "format")
SPECIAL = [f"__{name}__" for name in (*UNARY, *OPERATORS, *(f"r{name}" for name in OPERATORS))]
# Stands for batch_idx; whatever is done with it but passing it on is an error.
INDEX = type("BatchIndex", (), dict.fromkeys(SPECIAL, _no_index))()


def has(module: nn.Module, name: str) -> bool:
    """Whether the module has its own `name`, not Lightning's."""
    return name in vars(module) or bool(_definitions(module, name)[:1])


def check(module: Any) -> None:
    """Errors: no module that says how to train it; something of a Trainer's that a run does not do."""
    if hasattr(module, "_orig_mod"):
        raise Error("module: a compiled one, whose steps cannot be told from its wrapper's",
                    "self.net = torch.compile(self.net) in the module")
    if not isinstance(module, nn.Module) or not has(module, "training_step") or not has(module, "configure_optimizers"):
        raise Error(f"module: expected an nn.Module with training_step and configure_optimizers, found {type(module).__name__}",
                    "motley.Run(model, loss, train_loader, optimizer)")
    if not getattr(module, "automatic_optimization", True):
        raise Error(f"{type(module).__name__}: automatic_optimization is False, and a run makes the steps", MANUAL)
    if getattr(module, "truncated_bptt_steps", 0):
        raise Error(f"{type(module).__name__}: truncated_bptt_steps cuts batches, which a run does not", HOOKS["tbptt_split_batch"])
    for name, remedy in HOOKS.items():
        if has(module, name):
            raise Error(f"{type(module).__name__}.{name}: a Trainer would call it, and a run does not", remedy)
    for name in INDEXED:
        if name in vars(module):
            raise Error(f"{name}: expected a method of {type(module).__name__}, found an attribute of the object",
                        f"def {name} in the class")
    if not module.training:
        raise Error("module: it is in evaluation mode, which training would leave it in", "module.train() before the run")
    _check_code(module)


def _definitions(module: nn.Module, name: str) -> list[Any]:
    """Those of the user's own that a call could come to, the first one first; none where Lightning's is the first."""
    found = []
    for kind in type(module).__mro__:
        if name not in vars(kind):
            continue
        if kind.__name__ == BASE or kind.__module__.split(".")[0] in LIBRARIES:
            break
        found.append(vars(kind)[name])
    return found


def _check_code(module: nn.Module) -> None:
    """Looks through the code of the steps, and of what they call of the module's own."""
    waiting, seen = list(LOOKED_AT), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for function in map(_function, _definitions(module, name)):
            if function is None or not function.__code__.co_argcount:
                continue
            code = function.__code__
            own, *others = code.co_varnames[: code.co_argcount]
            read = _attributes(code, own)
            for attribute, remedy in ATTRIBUTES.items():
                if attribute in read and not _definitions(module, attribute):
                    raise Error(f"{name} reads self.{attribute}, which only a Trainer knows", remedy)
            index = others[1] if name in INDEXED and len(others) > 1 else "batch_idx"
            if index in others and _looks_at(code, index):
                raise Error(f"{name} looks at {index}, and in a run a batch has none: every machine computes another part of it",
                            f"leave {index} alone; training_step may ask for `step` by name")
            waiting += read


def _function(definition: Any) -> types.FunctionType | None:
    inner = inspect.unwrap(definition.fget if isinstance(definition, property) else definition)
    return inner if isinstance(inner, types.FunctionType) else None


def _instructions(code: types.CodeType) -> Iterator[list[dis.Instruction]]:
    """Of the code and of what is defined in it."""
    yield list(dis.get_instructions(code))
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _instructions(each)


def _loads(instruction: dis.Instruction, name: str) -> bool:
    given = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return instruction.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) and name in given


def _attributes(code: types.CodeType, own: str) -> set[str]:
    """What is read of `own`."""
    return {second.argval for instructions in _instructions(code) for first, second in zip(instructions, instructions[1:])
            if second.opname in ("LOAD_ATTR", "LOAD_METHOD") and _loads(first, own)}


def _looks_at(code: types.CodeType, name: str) -> bool:
    """Whether `name` is used otherwise than as an argument of a call."""
    for instructions in _instructions(code):
        for place, instruction in enumerate(instructions):
            if not _loads(instruction, name):
                continue
            user = next((each.opname for each in instructions[place + 1 :] if not each.opname.startswith(("LOAD_", "PUSH_NULL"))), "")
            if not user.startswith(("CALL", "PRECALL", "KW_NAMES")):
                return True
    return False
