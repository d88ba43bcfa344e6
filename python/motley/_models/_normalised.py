"""BatchNorm of a pass over several groups of samples, each by its own statistics.

On a processor group by group, by torch's kernel. That is slow on a card, where one channel of one group is little work for one block of
threads, and a group more is a launch more: there all groups of one size go at once, in the operations below, and what a group comes to
differs from torch's kernel by rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from motley._models._cuts import bounds


@dataclass
class Moved:
    """mean, var: by group, [groups, channels], what one step of BatchNorm's moving average comes to from zero, and what later ones come to
    in a layer that a pass comes to again. None: it has not come to it yet."""

    groups: int
    like: torch.Tensor  # [channels]
    mean: torch.Tensor | None = None
    var: torch.Tensor | None = None

    def from_zero(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self.mean is None or self.var is None:
            self.mean, self.var = (self.like.new_zeros((self.groups, len(self.like))) for _ in range(2))
        return self.mean, self.var

    def move(self, groups: slice, mean: torch.Tensor, var: torch.Tensor, count: int, momentum: float) -> None:
        """Those of these groups. var: biased, of so many numbers."""
        of_all = count / max(1, count - 1)
        if self.mean is None and len(mean) == self.groups and mean.dtype == self.like.dtype:
            self.mean, self.var = mean * momentum, var * (of_all * momentum)
            return
        for whole, own in zip(self.from_zero(), (mean, var * of_all), strict=True):
            whole[groups].lerp_(own.to(whole.dtype), momentum)


class Normalised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, moved: Moved | None, sizes: list[int],
                momentum: float, eps: float) -> torch.Tensor:
        how = _one_by_one if x.device.type == "cpu" else _at_once
        out, saved = how(x, weight, bias, moved, sizes, momentum, eps)
        ctx.save_for_backward(x, weight, *saved)
        ctx.sizes, ctx.eps = sizes, eps
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        x, weight, *saved = ctx.saved_tensors
        how = _one_by_one_back if x.device.type == "cpu" else _at_once_back
        return *how(grad, x, weight, saved, ctx.sizes, ctx.eps, list(ctx.needs_input_grad[:3])), None, None, None, None


# --- group by group --------------------------------------------------------------------------------------------------------------


def _one_by_one(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, moved: Moved | None, sizes: list[int],
                momentum: float, eps: float) -> tuple[torch.Tensor, list[torch.Tensor]]:
    mean, var = moved.from_zero() if moved is not None else (None, None)
    batch_norm = torch.ops.aten.native_batch_norm
    out = torch.empty_like(x)
    in_place = x.dtype in (torch.float32, torch.float64) and (weight is None or weight.dtype == x.dtype)
    saved: list[torch.Tensor] = []
    for j, (first, last) in enumerate(bounds(sizes)):
        running = (mean[j], var[j]) if mean is not None and var is not None else (None, None)
        arguments = (x[first:last], weight, bias, *running, True, momentum, eps)
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
    return by_channel.reshape(by_channel.shape[0], 1, by_channel.shape[1], *[1] * (like.dim() - 3))


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
    return whole, between + var.mean(1)


def _at_once(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, moved: Moved | None, sizes: list[int],
             momentum: float, eps: float) -> tuple[torch.Tensor, list[torch.Tensor]]:
    parts: list[torch.Tensor] = []
    saved: list[torch.Tensor] = []
    for run in _runs(sizes):
        part = _wide(run.of(x))
        mean, var = _moments(part)
        if moved is not None:
            moved.move(run.groups, mean, var, part[0].numel() // part.shape[2], momentum)
        scale = var.add_(eps).rsqrt_()
        saved += [mean, scale]
        if weight is not None:
            scale = scale * weight
        shift = -mean * scale if bias is None else torch.addcmul(bias.to(mean.dtype), mean, scale, value=-1)
        parts.append(torch.addcmul(_along(shift, part), part, _along(scale, part)).flatten(0, 1))
    return _joined(parts).to(x.dtype), saved


def _at_once_back(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, saved: list[torch.Tensor], sizes: list[int],
                  eps: float, wanted: list[bool]) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    again = torch.is_grad_enabled()  # the gradient will be differentiated, by way of the moments, too
    kernels = x.is_cuda and not again and wanted[0] and x.dim() > 2 and x.dtype == grad.dtype == torch.float32 and x.is_contiguous()
    how = _back_by_kernels if kernels else _back_by_moments
    grad = grad.contiguous() if kernels else grad
    parts: list[torch.Tensor] = []
    by_weight: torch.Tensor | None = None
    by_bias: torch.Tensor | None = None
    for j, run in enumerate(_runs(sizes)):
        part, slope = _wide(run.of(x)), _wide(run.of(grad))
        mean, invstd = saved[2 * j], saved[2 * j + 1]
        if again:
            mean, var = _moments(part)
            invstd = (var + eps).rsqrt()
        of_part, turned, total = how(slope, part, weight, mean, invstd, wanted[0])
        if of_part is not None:
            parts.append(of_part.flatten(0, 1))
        by_weight = turned.sum(0) if by_weight is None else by_weight + turned.sum(0)
        by_bias = total.sum(0) if by_bias is None else by_bias + total.sum(0)
    by_x = _joined(parts).to(x.dtype) if parts else None
    if weight is None or by_weight is None or by_bias is None:
        return by_x, None, by_bias if wanted[2] else None
    return by_x, by_weight.to(weight.dtype) if wanted[1] else None, by_bias.to(weight.dtype) if wanted[2] else None


Slopes = tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]  # of x; [groups, channels]: of what is weighed, and of what is added


def _back_by_moments(slope: torch.Tensor, part: torch.Tensor, weight: torch.Tensor | None, mean: torch.Tensor, invstd: torch.Tensor,
                     wanted: bool) -> Slopes:
    total = _total(slope)
    turned = (_total(slope * part) - mean * total) * invstd  # times what was normalised
    if not wanted:
        return None, turned, total
    count = part[0].numel() // part.shape[2]
    scale = invstd if weight is None else invstd * weight
    of_x = -scale * invstd * turned / count
    rest = -scale * total / count - of_x * mean
    of_part = torch.addcmul(torch.addcmul(_along(rest, part), part, _along(of_x, part)), slope, _along(scale, part))
    return of_part, turned, total


def _back_by_kernels(slope: torch.Tensor, part: torch.Tensor, weight: torch.Tensor | None, mean: torch.Tensor, invstd: torch.Tensor,
                     wanted: bool) -> Slopes:
    """By those of SyncBatchNorm, which go over an image less often. To them each channel of a sample is a channel: what they sum is added
    up by group between them."""
    groups, samples, channels = part.shape[:3]

    def spread(by_group: torch.Tensor) -> torch.Tensor:
        """[…, groups, channels] to […, samples of all groups * channels]."""
        return by_group.unsqueeze(-2).expand(-1, groups, samples, channels).reshape(len(by_group), -1)

    flat = (1, groups * samples * channels, -1)
    x, grad, own = part.view(flat), slope.view(flat), spread(torch.stack([mean, invstd]))
    found = torch.batch_norm_backward_reduce(grad, x, own[0], own[1], None, True, False, False)
    sums = torch.stack(found[:2]).view(2, groups, samples, channels).sum(2)
    weights = [] if weight is None else [weight.to(sums.dtype).expand(1, groups, channels)]
    wide = spread(torch.cat([sums, *weights]))
    count = torch.full((1,), part[0].numel() // channels, dtype=torch.int32, device=part.device)
    of_x = torch.batch_norm_backward_elemt(grad, x, own[0], own[1], None if weight is None else wide[2], wide[0], wide[1], count)
    return of_x.view(part.shape), sums[1] * invstd, sums[0]
