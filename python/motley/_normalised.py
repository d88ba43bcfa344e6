"""BatchNorm of a pass over several groups of samples, each by its own statistics.

On a processor group by group, by torch's kernel. That is slow on a card, where one channel of one group is little work for one block of
threads, and a group more is a launch more: there all groups of one size go at once, in the operations below, and what a group comes to
differs from torch's kernel by rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from motley._cuts import bounds


class Normalised(torch.autograd.Function):
    """mean, var: by group, [groups, channels], are moved towards its statistics, as torch's BatchNorm moves running ones."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, mean: torch.Tensor | None,
                var: torch.Tensor | None, sizes: list[int], momentum: float, eps: float) -> torch.Tensor:
        how = _one_by_one if x.device.type == "cpu" else _at_once
        out, saved = how(x, weight, bias, mean, var, sizes, momentum, eps)
        ctx.save_for_backward(x, weight, *saved)
        ctx.sizes, ctx.eps = sizes, eps
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        x, weight, *saved = ctx.saved_tensors
        how = _one_by_one_back if x.device.type == "cpu" else _at_once_back
        return *how(grad, x, weight, saved, ctx.sizes, ctx.eps, list(ctx.needs_input_grad[:3])), None, None, None, None, None


# --- group by group --------------------------------------------------------------------------------------------------------------


def _one_by_one(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, mean: torch.Tensor | None,
                var: torch.Tensor | None, sizes: list[int], momentum: float, eps: float) -> tuple[torch.Tensor, list[torch.Tensor]]:
    batch_norm = torch.ops.aten.native_batch_norm
    out = torch.empty_like(x)
    in_place = x.dtype in (torch.float32, torch.float64) and (weight is None or weight.dtype == x.dtype)
    saved: list[torch.Tensor] = []
    for j, (first, last) in enumerate(bounds(sizes)):
        moved = (mean[j], var[j]) if mean is not None and var is not None else (None, None)
        arguments = (x[first:last], weight, bias, *moved, True, momentum, eps)
        if in_place:
            own = x.new_empty((2, x.shape[1]))
            batch_norm.out(*arguments, out=out[first:last], save_mean=own[0], save_invstd=own[1])
            saved += [own[0], own[1]]
        else:
            part, *own = batch_norm.default(*arguments)
            out[first:last] = part
            saved += own
    return out, saved


def _one_by_one_back(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, saved: list[torch.Tensor], sizes: list[int],
                     eps: float, wanted: list[bool]) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    again = torch.is_grad_enabled()  # the gradient will be differentiated: torch knows how, of parts that are put together
    whole = None if again or not wanted[0] else torch.empty_like(x)
    parts: list[torch.Tensor] = []
    sums: list[torch.Tensor | None] = [None, None]
    for j, (first, last) in enumerate(bounds(sizes)):
        part, *others = torch.ops.aten.native_batch_norm_backward(grad[first:last], x[first:last], weight, None, None, saved[2 * j],
                                                                  saved[2 * j + 1], True, eps, wanted)
        if whole is not None:
            whole[first:last] = part
        elif wanted[0]:
            parts.append(part)
        for i, (is_wanted, other) in enumerate(zip(wanted[1:], others, strict=True)):
            if is_wanted:
                sums[i] = other if sums[i] is None else sums[i] + other
    return torch.cat(parts) if parts else whole, sums[0], sums[1]


# --- all groups of one size at once ----------------------------------------------------------------------------------------------


@dataclass
class _Run:
    """Groups of one size that lie side by side: the rows [first, last), and which groups."""

    first: int
    last: int
    groups: slice

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        """[groups, samples, channels, …], a view."""
        return whole[self.first : self.last].unflatten(0, (self.groups.stop - self.groups.start, -1))


def _runs(sizes: list[int]) -> Iterator[_Run]:
    first = at = 0
    for j, size in enumerate(sizes):
        if j + 1 == len(sizes) or sizes[j + 1] != size:
            last = at + (j + 1 - first) * size
            yield _Run(at, last, slice(first, j + 1))
            at, first = last, j + 1


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _along(by_channel: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """[groups, channels] so that it goes with [groups, samples, channels, …]."""
    return by_channel[:, None].reshape(by_channel.shape[0], 1, by_channel.shape[1], *[1] * (like.dim() - 3))


def _total(x: torch.Tensor) -> torch.Tensor:
    """[groups, channels]: first over what lies side by side in memory."""
    places = list(range(3, x.dim()))
    return (x.sum(places) if places else x).sum(1)


def _joined(parts: list[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _moments(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and (biased) variance, [groups, channels]: of each sample first, which are as many sums as there are threads for."""
    places = list(range(3, x.dim()))
    if not places:
        var, mean = torch.var_mean(x, 1, correction=0)
        return mean, var
    var, mean = torch.var_mean(x, places, correction=0)
    between, whole = torch.var_mean(mean, 1, correction=0)
    return whole, var.mean(1) + between


def _at_once(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, mean: torch.Tensor | None,
             var: torch.Tensor | None, sizes: list[int], momentum: float, eps: float) -> tuple[torch.Tensor, list[torch.Tensor]]:
    parts: list[torch.Tensor] = []
    saved: list[torch.Tensor] = []
    for run in _runs(sizes):
        part = _wide(run.of(x))
        own_mean, own_var = _moments(part)
        scale = (own_var + eps).rsqrt()
        saved += [own_mean, scale]
        count = part[0].numel() // part.shape[2]
        if mean is not None and var is not None:
            mean[run.groups].lerp_(own_mean.to(mean.dtype), momentum)
            var[run.groups].lerp_((own_var * (count / max(1, count - 1))).to(var.dtype), momentum)
        if weight is not None:
            scale = scale * weight
        shift = -own_mean * scale if bias is None else bias - own_mean * scale
        parts.append(torch.addcmul(_along(shift, part), part, _along(scale, part)).flatten(0, 1))
    return _joined(parts).to(x.dtype), saved


def _at_once_back(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, saved: list[torch.Tensor], sizes: list[int],
                  eps: float, wanted: list[bool]) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    again = torch.is_grad_enabled()  # the gradient will be differentiated, by way of the moments, too
    parts: list[torch.Tensor] = []
    by_weight: torch.Tensor | None = None
    by_bias: torch.Tensor | None = None
    for j, run in enumerate(_runs(sizes)):
        part, slope = _wide(run.of(x)), _wide(run.of(grad))
        mean, invstd = saved[2 * j], saved[2 * j + 1]
        if again:
            mean, var = _moments(part)
            invstd = (var + eps).rsqrt()
        total = _total(slope)
        turned = (_total(slope * part) - mean * total) * invstd  # times what was normalised
        by_bias = total.sum(0) if by_bias is None else by_bias + total.sum(0)
        by_weight = turned.sum(0) if by_weight is None else by_weight + turned.sum(0)
        if not wanted[0]:
            continue
        count = part[0].numel() // part.shape[2]
        scale = invstd if weight is None else invstd * weight
        of_x = -scale * invstd * turned / count
        rest = -scale * total / count - of_x * mean
        parts.append(torch.addcmul(torch.addcmul(_along(rest, part), part, _along(of_x, part)), slope, _along(scale, part)).flatten(0, 1))
    by_x = _joined(parts).to(x.dtype) if parts else None
    if weight is None or by_weight is None or by_bias is None:
        return by_x, None, by_bias if wanted[2] else None
    return by_x, by_weight.to(weight.dtype) if wanted[1] else None, by_bias.to(weight.dtype) if wanted[2] else None
