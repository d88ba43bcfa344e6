"""several.py folds|tuned|normed [GATES]: several runs one after the other, and what each left, as JSON on standard error.

GATES: a directory of files that a test has locked. In the body of its first epoch, run k waits for that named k; the script waits for "end"
after its last run.
"""

import copy
import fcntl
import json
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Subset, random_split

import cases
import motley

FOLDS, EPOCHS, BATCH = 3, 3, 40
DATA = cases.classes(240, 2)


def wait_for(gate):
    if len(sys.argv) > 2:
        with open(pathlib.Path(sys.argv[2], gate), encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_SH)


def train(number, run):
    for epoch in run.epochs(EPOCHS):
        torch.rand(7)  # what the body draws is not drawn on machines that join
        if epoch.number == 1:
            wait_for(str(number))
    return run.history


def folds(run=motley.Run, train=train):
    """Cross-validation: yields (number, history, model)."""
    torch.manual_seed(3)
    parts = random_split(DATA, [80] * FOLDS)
    for fold in range(FOLDS):
        model = cases.mlp()
        rest = Subset(DATA, [i for part in parts if part is not parts[fold] for i in part.indices])
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        made = run(model, cases.cross_entropy, DataLoader(rest, BATCH, shuffle=True), optimizer,
                   test=DataLoader(parts[fold], 64), score=cases.score, seed=cases.SEED)
        yield fold + 1, train(fold + 1, made), model


def tuned(run=motley.Run, train=train, norm=nn.LayerNorm):
    """Pre-training, then other targets with a frozen body, another loss, another optimizer, and the first model as teacher."""
    torch.manual_seed(3)
    body = nn.Sequential(nn.Linear(cases.FEATURES, 24), norm(24), nn.Tanh())
    first = nn.Sequential(body, nn.Linear(24, cases.CLASSES))
    made = run(first, cases.cross_entropy, DataLoader(DATA, BATCH, shuffle=True), torch.optim.SGD(first.parameters(), 0.1), seed=cases.SEED)
    yield 1, train(1, made), first
    teacher = copy.deepcopy(first).eval()
    body.eval().requires_grad_(False)
    second = nn.Sequential(body, nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, cases.CLASSES))

    def loss(model, batch):
        x, y = batch
        with torch.no_grad():
            wanted = teacher(x)
        return functional.cross_entropy(model(x), y, label_smoothing=0.1) + functional.mse_loss(model(x), wanted)

    made = run(second, loss, DataLoader(DATA, BATCH, shuffle=True), torch.optim.AdamW(second[1:].parameters(), 0.01), clip_norm=0.5,
               seed=cases.SEED)
    yield 2, train(2, made), second


def normed():
    """Running statistics and a counter that a later run has as frozen."""
    yield from tuned(norm=nn.BatchNorm1d)


if __name__ == "__main__":
    for number, history, model in {"folds": folds, "tuned": tuned, "normed": normed}[sys.argv[1]]():
        weights = sum(float(tensor.detach().double().sum()) for tensor in model.state_dict().values())
        told = json.dumps({"run": number, "losses": [epoch.loss for epoch in history], "tests": [epoch.test_loss for epoch in history],
                           "weights": weights})
        sys.stderr.write(f"told {told}\n")
    wait_for("end")
