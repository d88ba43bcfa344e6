"""A run whose body of an epoch forks, and notes how many sockets of the network the script has, and how many the process that it forked."""

import os
import socket
import stat

import torch
from torch.utils.data import DataLoader, TensorDataset

import motley

HANDLES_MAX = 1024


def note(name):
    found = 0
    for handle in range(HANDLES_MAX):
        try:
            if stat.S_ISSOCK(os.fstat(handle).st_mode):
                with socket.socket(fileno=os.dup(handle)) as each:
                    found += each.family in (socket.AF_INET, socket.AF_INET6)
        except OSError:  # there is no such handle
            continue
    with open(name, "w") as file:
        file.write(str(found))


def loss(model, batch):
    inputs, targets = batch
    return torch.nn.functional.mse_loss(model(inputs), targets)


if __name__ == "__main__":
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    loader = DataLoader(TensorDataset(torch.randn(256, 4), torch.randn(256, 1)), 64, shuffle=True)
    run = motley.Run(model, loss, loader, torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in run.epochs(1):
        note("script.txt")
        child = os.fork()
        if child == 0:
            note("child.txt")
            os._exit(0)
        os.waitpid(child, 0)
