"""The options of an optimizer's groups, as torch's arithmetic reads them. Everything that wants such a number asks here."""

import numbers
from typing import Any

import torch

from motley._errors import Error

# (lr, momentum, dampening, nesterov, weight_decay, beta1, beta2, eps) of a parameter group.
Group = tuple[float, float, float, bool, float, float, float, float]
# (lr, momentum, beta1, beta2) of a parameter group at a step.
Rates = tuple[float, float, float, float]
LEFT_ALONE: Group = (0.0, 0.0, 0.0, False, 0.0, 0.9, 0.999, 1e-8)

BETAS = (0.9, 0.999)
HINT = "a number of Python's: float(...)"
FLOAT32, FLOAT64 = 4, 8  # bytes
# torch raises betas to the power of the step in their own type; everything else ends in float32 anyway.
COARSEST = {"lr": FLOAT32, "momentum": FLOAT32, "dampening": FLOAT32, "weight_decay": FLOAT32, "eps": FLOAT32, "betas": FLOAT64}


def number(value: Any, what: str) -> float:
    """Of Python, NumPy, or a tensor with one element. Errors: `what` is none."""
    try:
        plain = value.item() if hasattr(value, "item") else value
    except (RuntimeError, ValueError):  # of several elements
        plain = None
    if not isinstance(plain, numbers.Real):
        raise Error(f"{what}: expected a number, found {type(value).__name__} {_shown(value)}", HINT)
    return float(plain)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def read(group: dict[str, Any], whole: bool) -> Group:
    """`whole`: nobody else reads them. Else options that are no numbers are the optimizer's own affair, and count as torch's defaults.
    Errors: one that is asked for is no number."""
    def one(key: str, default: float) -> float:
        value = group.get(key, default)
        if not whole and (key != "lr" or value is None):  # some have no learning rate
            try:
                return number(value, key)
            except Error:
                return default
        return number(value, f"optimizer: {key}")

    return (one("lr", 0), one("momentum", 0), one("dampening", 0), bool(group.get("nesterov", False)), one("weight_decay", 0),
            *_betas(group, whole), one("eps", 1e-8))


def _betas(group: dict[str, Any], whole: bool) -> tuple[float, float]:
    given = group.get("betas", BETAS)
    try:
        found = [number(beta, "optimizer: betas") for beta in given]
        if len(found) == 2 or not whole and len(found) > 2:
            return found[0], found[1]
    except TypeError:  # nothing that torch could unpack
        pass
    except Error:
        if whole:
            raise
    if whole:
        raise Error(f"optimizer: betas: expected two numbers, found {_shown(given)}", "betas=(0.9, 0.999)")
    return BETAS


def rates(group: Group) -> Rates:
    return group[0], group[1], group[5], group[6]


def set_rates(group: dict[str, Any], fresh: Rates) -> None:
    """What has changed since it was read: of anything else the optimizer keeps what the script put there."""
    lr, momentum, beta1, beta2 = rates(read(group, whole=False))
    if lr != fresh[0]:
        group["lr"] = fresh[0]
    if momentum != fresh[1]:
        group["momentum"] = fresh[1]
    if (beta1, beta2) != fresh[2:]:
        group["betas"] = (*fresh[2:], *tuple(group["betas"])[2:])


def coarse(group: dict[str, Any]) -> str | None:
    """The option, and its type, with which torch computes in fewer digits than with a number of Python's, so that only torch itself comes
    to the same."""
    for key, most in COARSEST.items():
        value = group.get(key)
        for each in value if isinstance(value, (list, tuple)) else (value,):
            dtype = getattr(each, "dtype", None)
            if dtype is not None and dtype.itemsize < most:
                return f"{key} in {str(dtype).removeprefix('torch.')}"
    return None


def refuse_coarse(who: str, group: dict[str, Any], before: dict[str, Any]) -> None:
    """Errors: `who` changed an option into one of a type with which torch computes in fewer digits; the run knows the number alone."""
    what = coarse({key: value for key, value in group.items() if key in COARSEST and plain(value) != plain(before.get(key))})
    if what is not None:
        raise Error(f"{who} gives the optimizer its {what}, with which torch computes in fewer digits", HINT)


def plain(value: Any) -> Any:
    """To be compared, and written down: numbers and their tuples as Python's; anything else as it is."""
    if isinstance(value, torch.Tensor) or hasattr(value, "dtype") and hasattr(value, "tolist"):
        value = value.tolist()
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


def options(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Of each group, to be compared."""
    return [{key: plain(value) for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


def check(optimizer: torch.optim.Optimizer) -> None:
    """Errors: torch does not make a step with these options. REQUIRES an optimizer that anybody could make of its groups."""
    groups = [{**group, "params": [_one_of(group["params"][0])]} for group in optimizer.param_groups if group["params"]]
    try:
        if groups:
            type(optimizer)(groups).step()
    except Exception as error:
        raise Error(f"the optimizer {type(optimizer).__name__} makes no step with the options it has: {type(error).__name__}: {error}",
                    HINT) from error


def _one_of(parameter: torch.Tensor) -> torch.Tensor:
    one = torch.zeros(1, dtype=parameter.dtype, device=parameter.device, requires_grad=True)
    one.grad = torch.zeros_like(one)
    return one
