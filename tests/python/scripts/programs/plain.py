"""What all programs have, and the two loops that most would be: over whole batches, and over groups where random numbers are drawn."""

import random
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

SEED, GROUP = 5, 32
LOW, MASK = 0xFFFFFFFF, (1 << 64) - 1


def plainly(program):
    """The loop that everybody writes; losses by step."""
    for _, numbers in program.batches():
        program.optimizer.zero_grad()
        found = program.loss(program.model, program.collated(numbers))
        mean = found[0] if isinstance(found, tuple) else found
        mean.backward()
        if clip_norm := program.options.get("clip_norm"):
            nn.utils.clip_grad_norm_([p for group in program.optimizer.param_groups for p in group["params"]], clip_norm)
        program.optimizer.step()
        yield mean.item()


def plainly_in_groups(program, after_group=lambda size: None, after_step=lambda: None):
    """The same, summed over groups of 32 positions, each with its own seeds for collate_fn and for the loss."""
    for step, numbers in program.batches():
        program.optimizer.zero_grad()
        loss_sum, weight_sum = 0.0, 0.0
        for at in range(0, len(numbers), GROUP):
            part = numbers[at : at + GROUP]
            seed_all(seeded(SEED + 1, step, at))
            batch = program.collated(part)
            seed_all(seeded(SEED, step, at))
            found = program.loss(program.model, batch)
            mean, weight = found if isinstance(found, tuple) else (found, len(part))
            (mean * weight).backward()
            loss_sum, weight_sum = loss_sum + mean.item() * float(weight), weight_sum + float(weight)
            after_group(len(part))
        for group in program.optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad /= weight_sum
        program.optimizer.step()
        after_step()
        yield loss_sum / weight_sum


def seed_all(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed & LOW)


@dataclass
class Program:
    """plain: the losses by step of the loop beside it.  own_loop: over the leases of a run; None: the run computes the loss.  body(run,
    epoch): after each epoch."""

    model: Any
    loss: Callable | None
    data: Dataset
    optimizer: torch.optim.Optimizer
    plain: Callable = plainly
    batch: int = 48
    epochs: int = 3
    collate: Callable = default_collate
    sampler: Any = None
    chosen: list[int] | None = None  # by the sampler
    seed: int = SEED
    own_loop: Callable | None = None
    body: Callable = lambda run, epoch: None
    options: dict = field(default_factory=dict)

    def batches(self):
        """Step and numbers of the samples, in the order of a run."""
        from sample_order import sample_order  # of the tests: a run gets on without
        chosen = self.chosen or list(range(len(self.data)))
        step = 0
        for epoch in range(self.epochs):
            order = [chosen[i] for i in sample_order(SEED, epoch, len(chosen)).tolist()]
            for first in range(0, len(order), self.batch):
                yield step, order[first : first + self.batch]
                step += 1

    def collated(self, numbers):
        return self.collate([self.data[i] for i in numbers])

    def loader(self):
        return DataLoader(self.data, self.batch, shuffle=None if self.sampler else True, sampler=self.sampler, collate_fn=self.collate)

    def run(self, **more):
        import motley
        return motley.Run(self.model, self.loss, self.loader(), self.optimizer, seed=self.seed, **self.options, **more)

    def train(self, **more):
        run = self.run(**more)
        if self.own_loop:
            self.own_loop(self, run.leases(self.epochs))
        else:
            for epoch in run.epochs(self.epochs):
                self.body(run, epoch.number)
        return run

    def tensors(self):
        """Of model and loss, by the names that they have in a run."""
        several = isinstance(self.model, tuple)
        parts = {f"{number}.": part for number, part in enumerate(self.model)} if several else {"": self.model}
        if isinstance(self.loss, nn.Module):
            parts["loss."] = self.loss
        return {prefix + name: value.detach() for prefix, part in parts.items() for name, value in part.state_dict().items()}


def seeded(seed, step, position):
    """The seed of the random numbers of a position, as docs say: two words of Philox-4x32-10."""
    block, key = [step & LOW, step >> 32, position & LOW, position >> 32], [seed & LOW, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * block[0], 0xCD9E8D57 * block[2]
        block = [(b >> 32) ^ block[1] ^ key[0], b & LOW, (a >> 32) ^ block[3] ^ key[1], a & LOW]
        key = [(key[0] + 0x9E3779B9) & LOW, (key[1] + 0xBB67AE85) & LOW]
    return (block[1] << 32 | block[0]) & MASK
