"""One pass over several groups of samples, equal to a pass over each: BatchNorm normalises every group by its own statistics, and every
group has random numbers of its own, those that it would draw alone.

Functions of torch are told by a mode: `batch_norm` becomes an operation of this file, whose gradient needs no mode. What draws is told by
torch's dispatcher: it is drawn group by group, from generators whose states are kept. Meanwhile the seed of the process's generator says
which draw is next: whoever puts its state back, as checkpointing does before it computes a layer again, gets the same numbers again.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from motley._machines import _devices
from motley._models import _normalised
from motley._models._cuts import Refused, bounds

MARK = 0x6D6F746C << 32  # and the number of the next draw: seeds that no group has, as good as certainly
NORMALISED = functional.batch_norm
ATTENTION = functional.scaled_dot_product_attention
MANY_HEADS = functional.multi_head_attention_forward


@dataclass
class Fused:
    """How passes over several groups go, as the trial found: whether the forward pass `draws`, along which dimension the samples of each
    draw lie, and whether the backward pass computes layers again."""

    draws: bool = False
    dimensions: dict[int, int] = field(default_factory=dict)
    recomputes: bool = False
    learning: bool = True  # it is being tried


class Groups(TorchFunctionMode):
    """Of one micro-batch, whose groups have `sizes`; seeds: of their random numbers. Goes on in the forward pass, and in a backward
    pass that computes layers again."""

    def __init__(self, fused: Fused, sizes: list[int], seeds: list[int], device: torch.device):
        super().__init__()
        self.sizes = sizes
        self.calls: list[int] = []  # of what is done group by group, in each part that it went on for
        self._normalised_ones = 0
        self._moved: dict[int, _normalised.Moved] = {}  # by running mean
        self.draws = _Draws(fused, sizes, seeds, device) if fused.draws else None

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        before = self._done()
        with self, self.draws.going_on() if self.draws else contextlib.nullcontext():
            yield
        self.calls.append(self._done() - before)

    def backward(self, loss: torch.Tensor, gradient: torch.Tensor) -> None:
        """By the engine itself: torch's functions for this are told like any other, and end the mode meanwhile."""
        with self.going_on():
            torch.autograd.Variable._execution_engine.run_backward((loss,), (gradient,), False, False, (), allow_unreachable=True,
                                                                   accumulate_grad=True)

    def _done(self) -> int:
        return self._normalised_ones + (self.draws.count if self.draws else 0)

    def statistics_of(self, mean: torch.Tensor, var: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """By group. `mean`, `var`: buffers of the layer, which hold what it has done otherwise."""
        return self.normalised_by(mean) or (mean[None], var[None])

    def normalised_by(self, mean: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Those of the layer with this running mean by group, if it was told of it."""
        moved = self._moved.get(id(mean))
        return moved.from_zero() if moved is not None else None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is NORMALISED:
            return self._normalised(*args, **kwargs)
        if func is ATTENTION and self.draws is not None:
            return self._attended(*args, **kwargs)
        if func is MANY_HEADS and self.draws is not None:
            with self._within_many_heads():
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    @contextlib.contextmanager
    def _within_many_heads(self) -> Iterator[None]:
        """What it calls, no mode is told of."""
        functional.scaled_dot_product_attention = self._attended  # type: ignore[assignment]
        try:
            yield
        finally:
            functional.scaled_dot_product_attention = ATTENTION

    def _normalised(self, input: torch.Tensor, running_mean: torch.Tensor | None, running_var: torch.Tensor | None,
                    weight: torch.Tensor | None = None, bias: torch.Tensor | None = None, training: bool = False, momentum: float = 0.1,
                    eps: float = 1e-5) -> torch.Tensor:
        if not training:
            return functional.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
        self._normalised_ones += 1
        sizes = _shares(self.sizes, input.shape, 0)
        for size in sizes:
            functional._verify_batch_size([size, *input.shape[1:]])  # type: ignore[attr-defined]
        moved = None
        if running_mean is not None and running_var is not None:
            moved = self._moved.setdefault(id(running_mean), _normalised.Moved(len(sizes), running_mean))
        return _normalised.Normalised.apply(input, weight, bias, moved, sizes, momentum, eps)  # type: ignore[no-any-return]

    def _attended(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
                  dropout_p: float = 0.0, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Its kernels draw by themselves."""
        if dropout_p == 0:
            return ATTENTION(query, key, value, attn_mask, dropout_p, *args, **kwargs)
        assert self.draws is not None
        sizes = _shares(self.sizes, query.shape, 0)
        q, k, v = (each.split(sizes) for each in (query, key, value))
        if attn_mask is not None and attn_mask.dim() == query.dim() and attn_mask.shape[0] == query.shape[0] > 1:
            masks: Any = attn_mask.split(sizes)
        else:
            masks = [attn_mask] * len(sizes)
        return torch.cat(self.draws.each(lambda j: ATTENTION(q[j], k[j], v[j], masks[j], dropout_p, *args, **kwargs)))


def _shares(sizes: list[int], shape: Any, dimension: int) -> list[int]:
    """Of the groups, in a dimension that has one element or several for every sample."""
    times, rest = divmod(shape[dimension] if len(shape) > dimension else 0, sum(sizes))
    if rest or not times:
        raise Refused("")
    return [times * size for size in sizes]


# --- random numbers --------------------------------------------------------------------------------------------------------------


class _Draws(TorchDispatchMode):
    """What draws does so for each group."""

    def __init__(self, fused: Fused, sizes: list[int], seeds: list[int], device: torch.device):
        super().__init__()
        self._fused, self._sizes = fused, sizes
        self._generators = _devices.generators(device)
        states = []
        for seed in seeds:
            for generator in self._generators:
                generator.manual_seed(seed)
            states.append(self._states())
        self._before = [states]  # of each draw: those of the groups
        self._inside = False
        self.count = 0

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        if self._number() is None:
            torch.default_generator.manual_seed(MARK + len(self._before) - 1)
        with self:
            yield
        number = self._number()
        if number is None or not torch.equal(torch.Generator().manual_seed(MARK + number).get_state(), torch.default_generator.get_state()):
            raise Refused("something draws from torch's generator by itself")

    def _states(self) -> list[torch.Tensor]:
        return [generator.get_state() for generator in self._generators]

    def _number(self) -> int | None:
        number = torch.default_generator.initial_seed() - MARK
        return number if 0 <= number < len(self._before) else None

    def each(self, draw: Callable[[int], Any]) -> list[Any]:
        """What it gives for each group. Raises Refused: somebody has seeded the generator meanwhile."""
        number = self._number()
        if number is None:
            raise Refused("the loss seeds torch's generator")
        found, after = [], []
        self._inside = True
        try:
            for j in range(len(self._sizes)):
                for generator, state in zip(self._generators, self._before[number][j], strict=True):
                    generator.set_state(state)
                found.append(draw(j))
                after.append(self._states())
        finally:
            self._inside = False
        self._before[number + 1 : number + 2] = [after]
        torch.default_generator.manual_seed(MARK + number + 1)
        self.count += 1
        return found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._inside or torch.Tag.nondeterministic_seeded not in func.tags or _silent(func, args, kwargs):
            return func(*args, **kwargs)
        name, number = func.overloadpacket.__name__, self._number()
        if name.startswith("_cudnn"):
            raise Refused("recurrent layers of cuDNN drop out within one kernel")
        if any(isinstance(each, torch.Generator) for each in (*args, *kwargs.values())):
            raise Refused("the loss draws from a generator of its own")
        if name.endswith("_"):
            return self._in_place(func, number, args, kwargs)
        if func._schema.is_mutable:
            raise Refused("")
        if any(isinstance(each, torch.Tensor) for each in args):
            return self._of_tensors(func, number, args, kwargs)
        return self._of_shape(func, number, args, kwargs)

    def _dimension(self, number: int | None, shape: Any) -> tuple[int, list[int]]:
        """Where the samples are in a draw, and the shares of the groups."""
        known, whole = self._fused.dimensions, sum(self._sizes)
        if self._fused.learning and number is not None and number not in known:
            known[number] = next((d for d in (0, 1) if len(shape) > d and shape[d] and shape[d] % whole == 0), 0)
        dimension = known.get(-1 if number is None else number, 0)
        if len(shape) <= dimension or shape[dimension] % whole:
            raise Refused(f"the loss draws numbers of the shape {list(shape)}, which no sample has for itself")
        return dimension, _shares(self._sizes, shape, dimension)

    def _in_place(self, func: Any, number: int | None, args: Any, kwargs: Any) -> Any:
        whole = args[0]
        dimension, shares = self._dimension(number, whole.shape)
        cuts = bounds(shares)

        def draw(j: int) -> None:
            first, last = cuts[j]
            part = whole.narrow(dimension, first, last - first)
            own = _alone(part)
            func(own, *_parts(args[1:], whole.shape, dimension, cuts[j]), **_parts(kwargs, whole.shape, dimension, cuts[j]))
            if own is not part:
                part.copy_(own)

        self.each(draw)
        return whole

    def _of_tensors(self, func: Any, number: int | None, args: Any, kwargs: Any) -> Any:
        shape = next(each for each in args if isinstance(each, torch.Tensor)).shape
        dimension, shares = self._dimension(number, shape)
        cuts = bounds(shares)
        found = self.each(lambda j: func(*_parts(args, shape, dimension, cuts[j]), **_parts(kwargs, shape, dimension, cuts[j])))
        if isinstance(found[0], torch.Tensor):
            return _put_together(found, dimension, shares)
        return tuple(_put_together(parts, dimension, shares) for parts in zip(*found, strict=True))

    def _of_shape(self, func: Any, number: int | None, args: Any, kwargs: Any) -> Any:
        place = next((i for i, each in enumerate(args) if isinstance(each, (list, tuple))), None)
        if place is None:
            raise Refused("the loss draws a permutation or a number for the whole batch")
        dimension, shares = self._dimension(number, args[place])

        def draw(j: int) -> Any:
            shape = [shares[j] if d == dimension else size for d, size in enumerate(args[place])]
            return func(*args[:place], shape, *args[place + 1:], **kwargs)

        return torch.cat(self.each(draw), dimension)


def _silent(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operator that may draw does not, by what it is given."""
    for place, argument in enumerate(func._schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name, argument.default_value)
        if (argument.name in ("train", "training") and value is False) or (argument.name in ("dropout_p", "dropout") and value == 0):
            return True
    return False


def _parts(values: Any, shape: Any, dimension: int, cut: tuple[int, int]) -> Any:
    """Of a group: tensors that go with one of this shape are cut."""
    first, last = cut

    def part(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            return value
        if value.dim() == len(shape) and value.shape[dimension] == shape[dimension]:
            return _alone(value.narrow(dimension, first, last - first))
        raise Refused("")

    return {key: part(value) for key, value in values.items()} if isinstance(values, dict) else [part(value) for value in values]


def _alone(part: torch.Tensor) -> torch.Tensor:
    """The part of a group as it would lie in memory without the others: on a card numbers are drawn in the order of memory."""
    step = 1
    for stride, size in sorted(zip(part.stride(), part.shape, strict=True)):
        if size != 1 and stride != step:
            return part.clone()  # without gaps, with its dimensions in the same order
        step *= size
    return part


def _put_together(parts: Any, dimension: int, shares: list[int]) -> torch.Tensor:
    for part, share in zip(parts, shares, strict=True):
        if not isinstance(part, torch.Tensor) or part.dim() <= dimension or part.shape[dimension] != share:
            raise Refused("")
    first = parts[0]
    order = sorted(range(first.dim()), key=first.stride, reverse=True)  # of the dimensions in memory
    shape = [sum(shares) if d == dimension else size for d, size in enumerate(first.shape)]
    whole = first.new_empty([shape[d] for d in order]).permute([order.index(d) for d in range(len(order))])
    return torch.cat(parts, dimension, out=whole) if order != list(range(len(order))) else torch.cat(parts, dimension)
