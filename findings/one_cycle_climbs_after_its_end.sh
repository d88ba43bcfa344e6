#!/usr/bin/env bash
# torch 2.13.0: the step after the last of a OneCycleLR is made with a negative learning rate, or with one 10,000 times that before.
#
# Behaviour: in the usual loop, optimizer.step() and then scheduler.step(), the call after the last step that has a rate is allowed: it goes
# on along the curve. torch raises at the next call alone ("Tried to step 11 times"), when a step at that rate has been made. So where
# total_steps is one short (len(data) // batch, and the loader keeps the last part), the training does not fail before its last step but
# behind it: for max_lr=1 that was made at -0.14 with anneal_strategy="linear", which climbs, and at 0.05 instead of 4e-6 with "cos". Who
# calls the scheduler between steps only, or catches the error as the end of the schedule, keeps these weights.
set -euo pipefail
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
python3 -m venv "$here/env"
"$here/env/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$here/env/bin/python" - <<'PYTHON'
import torch

TOTAL, last = 10, {}
for strategy in ("linear", "cos"):
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=TOTAL, anneal_strategy=strategy, cycle_momentum=False)
    rates = []
    for step in range(TOTAL + 1):
        weight.grad = weight.detach().clone()
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
        if step < TOTAL:
            scheduler.step()
    try:
        scheduler.step()
        raised = "nothing"
    except ValueError as error:
        raised = str(error).splitlines()[0]
    last[strategy] = rates[-2:]
    print(f"{strategy}: step {TOTAL} at a rate of {rates[-2]:.2g}, step {TOTAL + 1} at {rates[-1]:.2g}; the next call: {raised}")
assert last["linear"][0] > 0 > -0.1 > last["linear"][1]
assert last["cos"][1] > 1000 * last["cos"][0]
PYTHON
