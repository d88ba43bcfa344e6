"""own_kernels.py: computes something of its own between the epochs, with two threads; prints how many threads there are around it."""

import os
import sys

import torch
from torch.utils.data import DataLoader

import cases
import motley

if __name__ == "__main__":
    torch.set_num_threads(2)
    numbers = torch.rand(1 << 20)
    numbers.exp()
    case = cases.make("groups")
    for epoch in motley.Run(case.model, case.loss, DataLoader(case.train, case.batch, shuffle=True), case.optimizer).epochs(100000):
        before = len(os.listdir("/proc/self/task"))
        numbers.exp()
        if epoch.number > 20:  # some threads come late in a run's start
            sys.stderr.write(f"threads [{before}, {len(os.listdir('/proc/self/task'))}]\n")
        if epoch.number == 23:
            break
