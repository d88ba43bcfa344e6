"""beside.py PIPE: a run, and a thread of Python's beside it that repeats on standard error what it reads from a named pipe."""

import sys
import threading

from torch.utils.data import DataLoader

import cases
import motley


def repeat(pipe):
    with open(pipe) as lines:
        for line in lines:
            sys.stderr.write(line)


if __name__ == "__main__":
    threading.Thread(target=repeat, args=(sys.argv[1],), daemon=True).start()
    case = cases.make("groups")
    for _ in motley.Run(case.model, case.loss, DataLoader(case.train, case.batch, shuffle=True), case.optimizer).epochs(1000):
        pass
