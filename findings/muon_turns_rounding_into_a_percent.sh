#!/usr/bin/env bash
# torch 2.13.0: with torch.optim.Muon, in how many parts a batch's gradient is added up decides one percent of the weights after 50 steps.
#
# Behaviour: the same batches, once in 7 parts and once in 15, whose gradients torch adds up itself; they differ by rounding alone. AdamW
# and SGD end 1e-7 apart. Muon's weights are equal after the first step and a hundredth apart after 50: Newton-Schulz rounds to bfloat16,
# so 1e-8 of a gradient is either nothing or a whole bfloat16 step, and small singular values are blown up to one. Gradient accumulation,
# another number of threads or another GPU are no "same run" for it; its own spread is what a comparison has to allow.
set -euo pipefail
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
python3 -m venv "$here/env"
"$here/env/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$here/env/bin/python" - <<'PYTHON'
import torch
from torch.nn import Linear, Sequential, Tanh, functional

torch.set_num_threads(1)
OPTIMIZERS = {"AdamW": lambda p: torch.optim.AdamW(p, lr=1e-3), "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
              "Muon": lambda p: torch.optim.Muon(p, lr=0.02)}


def train(optimizer, parts, steps):
    torch.manual_seed(0)
    model = Sequential(Linear(32, 64, bias=False), Tanh(), Linear(64, 10, bias=False))
    optimizer = optimizer(model.parameters())
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        x, y = torch.randn(105, 32, generator=generator), torch.randint(10, (105,), generator=generator)
        optimizer.zero_grad()
        for x_part, y_part in zip(x.chunk(parts), y.chunk(parts)):
            (functional.cross_entropy(model(x_part), y_part, reduction="sum") / 105).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten().double() for p in model.parameters()])


apart = {}
for name, optimizer in OPTIMIZERS.items():
    for steps in (1, 50):
        one, other = (train(optimizer, parts, steps) for parts in (7, 15))
        apart[name, steps] = float((one - other).norm() / one.norm())
    print(f"{name}: {apart[name, 1]:.1e} apart after one step, {apart[name, 50]:.1e} after 50")
assert apart["AdamW", 50] < 1e-6 and apart["SGD", 50] < 1e-6 and apart["Muon", 50] > 2e-3
PYTHON
