"""Running statistics of BatchNorm: summed over the micro-batches of a task, moved at the end of a step. All layers go at once: on a card a
kernel a layer is what everybody waits for, and so is a number that has to come from the host."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from motley._models import _groups


class Layer(NamedTuple):
    """mean, var: the layer's own buffers, which every forward pass moves. The others are pieces of flat vectors: what it has at this
    version, and sums over samples of means and of squares."""

    mean: torch.Tensor
    var: torch.Tensor
    mean_now: torch.Tensor
    var_now: torch.Tensor
    mean_sum: torch.Tensor
    square_sum: torch.Tensor


class Statistics:
    """Of all layers of a model on one device. momenta: by layer, of its moving average."""

    def __init__(self, layers: Sequence[Layer], momenta: Sequence[float]):
        self._layers, self._widths = list(layers), [len(layer.mean_now) for layer in layers]
        self._momenta = list(momenta)
        self._own = [each for layer in layers for each in (layer.mean, layer.var)]
        self.sums = [each for layer in layers for each in (layer.mean_sum, layer.square_sum)]
        self._fresh: dict[torch.dtype, float | torch.Tensor] = {}

    def start(self) -> None:
        """Before the forward pass of a micro-batch."""
        if self._layers:
            with torch.no_grad():
                torch._foreach_zero_(self._own)

    def add(self, size: int, groups: _groups.Groups | None = None) -> None:
        """After the passes of a micro-batch of `size` samples. `groups`: has those of each group, where there are several."""
        if not self._layers:
            return
        sizes = groups.sizes if groups else [size]
        own = [(layer.mean, layer.var) for layer in self._layers]
        by_group = [groups.statistics_of(*each) if groups else (each[0][None], each[1][None]) for each in own]
        with torch.no_grad():
            mean, var = (torch.cat([each.expand(len(sizes), -1) for each in column], 1) for column in zip(*by_group, strict=True))
            # From zero, one step of the moving average leaves momentum times the batch's own statistic.
            mean = mean / self._momentum(mean.dtype)
            square = var / self._momentum(var.dtype) + mean * mean
            for found, to in ((mean, [layer.mean_sum for layer in self._layers]), (square, [layer.square_sum for layer in self._layers])):
                torch._foreach_add_(to, _weighed(found, sizes).to(to[0].dtype).split(self._widths))

    def move(self) -> None:
        """At the end of a step: sums are over its samples, divided by their number. As ps::move_statistics; mps has no float64."""
        if not self._layers:
            return
        exact = torch.float32 if self.sums[0].device.type == "mps" else torch.float64
        _, _, mean_now, var_now, mean_sum, square_sum = (list(column) for column in zip(*self._layers, strict=True))
        with torch.no_grad():
            mean = torch.cat(mean_sum).to(exact)
            var = (torch.cat(square_sum).to(exact) - mean * mean).clamp_min(0)
            fresh = self._momentum(exact)
            for now, found in ((mean_now, mean), (var_now, var)):
                moved = (1 - fresh) * torch.cat(now).to(exact) + fresh * found
                torch._foreach_copy_(now, moved.to(now[0].dtype).split(self._widths))

    def show(self) -> None:
        """In the layers' own buffers, for an evaluation."""
        if self._layers:
            with torch.no_grad():
                torch._foreach_copy_(self._own, [each for layer in self._layers for each in (layer.mean_now, layer.var_now)])

    def _momentum(self, dtype: torch.dtype) -> float | torch.Tensor:
        """One for all, or by channel of all layers."""
        if dtype not in self._fresh:
            same = len(set(self._momenta)) == 1
            by_channel = [momentum for momentum, width in zip(self._momenta, self._widths, strict=True) for _ in range(width)]
            self._fresh[dtype] = self._momenta[0] if same else torch.tensor(by_channel, dtype=dtype, device=self.sums[0].device)
        return self._fresh[dtype]


def _weighed(by_group: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """The sum over samples of what each group has in its row. Groups of one size lie side by side."""
    found: torch.Tensor | None = None
    first = 0
    for at in range(1, len(sizes) + 1):
        if at == len(sizes) or sizes[at] != sizes[first]:
            part = by_group[first:at].sum(0) * sizes[first]
            found = part if found is None else found + part
            first = at
    assert found is not None
    return found
