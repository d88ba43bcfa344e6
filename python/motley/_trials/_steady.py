"""Random numbers that are the same for every sample: while a loss is tried on parts of a batch, its draws must not tell these apart.

What is drawn depends on the last dimension of its shape alone, which is seldom that of the samples; `flat`: on nothing at all.
"""

import contextlib
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

try:
    import numpy
except ImportError:  # torch works without
    numpy = None  # type: ignore[assignment]

STEP = (math.sqrt(5) - 1) / 2  # multiples of it, modulo 1, are spread evenly
MIDDLE = 0.5


class Steady(TorchDispatchMode):
    """In torch. calls: names of the operators that drew."""

    def __init__(self, flat: bool):
        super().__init__()
        self._flat = flat
        self.calls: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if name not in self.calls:
            self.calls.append(name)
        found = func(*args, **kwargs)  # of the right shape, type and device
        rule = RULES.get(name)
        if rule is not None:
            with torch.no_grad():
                rule(self, found, args, kwargs)
        return found

    def uniform(self, like: torch.Tensor) -> torch.Tensor:
        """In (0, 1), float64, broadcastable to `like`."""
        if self._flat or like.dim() < 2:
            return torch.full((), MIDDLE, dtype=torch.float64)
        return (torch.arange(1, like.shape[-1] + 1, dtype=torch.float64) * STEP) % 1

    def normal(self, like: torch.Tensor) -> torch.Tensor:
        return torch.erfinv(2 * self.uniform(like) * 0.999 - 0.99) * math.sqrt(2)


Rule = Callable[[Steady, Any, Any, Any], None]


def _argument(args: Any, kwargs: Any, place: int, name: str, default: Any) -> Any:
    found = args[place] if len(args) > place else kwargs.get(name, default)
    return default if found is None else found


def _put(found: torch.Tensor, values: Any) -> None:
    found.copy_(torch.as_tensor(values).to(found.device).expand(found.shape))


def _rand(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    _put(found, steady.uniform(found))


def _randn(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    _put(found, steady.normal(found))


def _uniform(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    low, high = _argument(args, kwargs, 1, "from", 0.0), _argument(args, kwargs, 2, "to", 1.0)
    _put(found, low + (high - low) * steady.uniform(found))


def _normal(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    _put(found, _argument(args, kwargs, 1, "mean", 0.0) + _argument(args, kwargs, 2, "std", 1.0) * steady.normal(found))


def _normal_out(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    mean, std = (each.cpu() if isinstance(each, torch.Tensor) else each
                 for each in (_argument(args, kwargs, 0, "mean", 0.0), _argument(args, kwargs, 1, "std", 1.0)))
    _put(found, mean + std * steady.normal(found))


def _bernoulli_in_place(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    p = _argument(args, kwargs, 1, "p", 0.5)
    _put(found, steady.uniform(found) < (p.cpu() if isinstance(p, torch.Tensor) else p))


def _bernoulli(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    p = _argument(args, kwargs, 1, "p", args[0].cpu())
    _put(found, steady.uniform(found) < p)


def _dropout(steady: Steady, found: Any, args: Any, kwargs: Any) -> None:
    output, mask = found
    p = _argument(args, kwargs, 1, "p", 0.5)
    _put(mask, steady.uniform(mask) < 1 - p)
    output.copy_(args[0] * mask / (1 - p) if p < 1 else torch.zeros_like(output))


def _randint(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    numbers = [each for each in args if isinstance(each, int) and not isinstance(each, bool)]
    low, high = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1]) if numbers else (0, 2)
    _put(found, (low + (high - low) * steady.uniform(found)).floor())


def _randperm(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    _put(found, torch.arange(found.numel()))


def _multinomial(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    weights, count = args[0], found.shape[-1]
    found.copy_(weights.topk(count, dim=-1).indices if count <= weights.shape[-1] else weights.argmax(-1, keepdim=True).expand(found.shape))


def _exponential(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    _put(found, -torch.log(steady.uniform(found)) / _argument(args, kwargs, 1, "lambd", 1.0))


def _rrelu(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    of, slopes = args[0], args[1]
    low, high = _argument(args, kwargs, 2, "lower", 1 / 8), _argument(args, kwargs, 3, "upper", 1 / 3)
    _put(slopes, low + (high - low) * steady.uniform(of))
    slopes.masked_fill_(of > 0, 1)
    found.copy_(of * slopes)


def _poisson(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    found.copy_(args[0].floor())


def _binomial(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    found.copy_((args[0] * args[1]).floor())


def _gamma(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    found.copy_(args[0])


def _dirichlet(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    found.copy_(args[0] / args[0].sum(-1, keepdim=True))


def _cauchy(steady: Steady, found: torch.Tensor, args: Any, kwargs: Any) -> None:
    spread = torch.tan(math.pi * (steady.uniform(found) - MIDDLE) * 0.99)
    _put(found, _argument(args, kwargs, 1, "median", 0.0) + _argument(args, kwargs, 2, "sigma", 1.0) * spread)


RULES: dict[str, Rule] = {
    "rand": _rand, "rand_like": _rand, "randn": _randn, "randn_like": _randn, "uniform_": _uniform, "normal_": _normal,
    "normal": _normal_out, "bernoulli": _bernoulli, "bernoulli_": _bernoulli_in_place, "native_dropout": _dropout,
    "randint": _randint, "randint_like": _randint,
    "randperm": _randperm, "multinomial": _multinomial, "exponential_": _exponential,
    "rrelu_with_noise": _rrelu, "rrelu_with_noise_": _rrelu,
    "poisson": _poisson, "binomial": _binomial, "_standard_gamma": _gamma, "_sample_dirichlet": _dirichlet, "cauchy_": _cauchy,
}


# --- random and numpy.random ---------------------------------------------------------------------------------------------------


def _full(shape: Any, value: float) -> Any:
    if shape is None or shape == ():
        return value
    return numpy.full(shape, value)


def _pick(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
    first = numpy.arange(a) if numpy.ndim(a) == 0 else numpy.asarray(a)
    if size is None:
        return first[0]
    return numpy.resize(first, size)


def _whole(low: int, high: int | None = None, size: Any = None, dtype: Any = int) -> Any:
    low, high = (0, low) if high is None else (low, high)
    value = (numpy.asarray(low) + numpy.asarray(high)) // 2
    return int(value) if size is None and value.ndim == 0 else numpy.broadcast_to(value, size or value.shape).astype(dtype)


OF_NUMPY: dict[str, Callable[..., Any]] = {
    "rand": lambda *shape: _full(shape, MIDDLE), "randn": lambda *shape: _full(shape, MIDDLE),
    "random": lambda size=None: _full(size, MIDDLE), "random_sample": lambda size=None: _full(size, MIDDLE),
    "uniform": lambda low=0.0, high=1.0, size=None: _full(size, 1.0) * (low + high) / 2,
    "normal": lambda loc=0.0, scale=1.0, size=None: loc + _full(size, MIDDLE) * scale,
    "standard_normal": lambda size=None: _full(size, MIDDLE), "randint": _whole, "choice": _pick,
    "permutation": lambda x: numpy.arange(x) if numpy.ndim(x) == 0 else numpy.array(x), "shuffle": lambda x: None,
    "beta": lambda a, b, size=None: _full(size, 1.0) * a / (a + b),
}
OF_RANDOM: dict[str, Callable[..., Any]] = {
    "random": lambda: MIDDLE, "uniform": lambda a, b: (a + b) / 2, "gauss": lambda mu=0.0, sigma=1.0: mu + MIDDLE * sigma,
    "normalvariate": lambda mu=0.0, sigma=1.0: mu + MIDDLE * sigma, "randint": lambda a, b: (a + b) // 2,
    "randrange": lambda start, stop=None, step=1: start // 2 if stop is None else start, "choice": lambda seq: seq[0],
    "choices": lambda population, weights=None, *, cum_weights=None, k=1: list(population)[:1] * k,
    "sample": lambda population, k, *, counts=None: list(population)[:k], "shuffle": lambda x: None,
    "betavariate": lambda alpha, beta: alpha / (alpha + beta),
}


@contextlib.contextmanager
def steady(flat: bool) -> Iterator[Steady]:
    """Meanwhile torch, and what is called as random.… or numpy.random.…, draw the same for every sample."""
    kept = [(module, name, getattr(module, name)) for module, own in ((random, OF_RANDOM), *([(numpy.random, OF_NUMPY)] if numpy else []))
            for name in own]
    for module, name, _ in kept:
        setattr(module, name, (OF_RANDOM if module is random else OF_NUMPY)[name])
    try:
        with Steady(flat) as mode:
            yield mode
    finally:
        for module, name, function in kept:
            setattr(module, name, function)
