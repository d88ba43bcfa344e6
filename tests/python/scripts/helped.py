"""helped.py CASE: trains one of cases.py with mode="helper". Where SLOW_HEAD is set a forward pass takes so long of the processor's
time, of which a helper needs a few milliseconds, that others are in time to help on a busy machine, too."""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader

import cases
import motley

SLOW = 0.1  # seconds

if __name__ == "__main__":
    case = cases.make(sys.argv[1])
    collate = cases.pad if sys.argv[1] == "tokens" else None

    def loss(model, batch):
        with torch.no_grad():
            until = time.thread_time() + SLOW if "SLOW_HEAD" in os.environ else 0
            while time.thread_time() < until:
                case.loss(model, batch)
        return case.loss(model, batch)

    loader = DataLoader(case.train, case.batch, shuffle=True, collate_fn=collate)
    run = motley.Run(case.model, loss, loader, case.optimizer, schedule=case.schedule, schedule_every=case.schedule_every,
                     test=DataLoader(case.test, 64, collate_fn=collate), score=case.score, clip_norm=case.clip_norm,
                     clip_norm_of=case.clip_norm_of, seed=cases.SEED, mode="helper")
    for _ in run.epochs(case.epochs):
        pass
