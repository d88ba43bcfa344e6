"""printing.py break|raise: writes to the terminal in every way from the body of its epochs, and leaves them so."""

import logging
import sys
import threading

from torch.utils.data import DataLoader

import cases
import motley

THREADS, LINES = 3, 20


def from_a_thread(number):
    for line in range(LINES):
        print("thread", number, "line", line)  # in many writes


def body(epoch):
    print("body", epoch.number)
    logging.info("epoch %d", epoch.number)
    threads = [threading.Thread(target=from_a_thread, args=(f"{epoch.number}-{number}",)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("half a line", end=" ", flush=True)
    print("and its other half")
    for percent in range(0, 101, 10):
        sys.stderr.write(f"\r{percent} %")
    sys.stderr.write(f" of {epoch.number}\n")
    print("\x1b[31mred\x1b[0m", "\x1b[2Aup")
    assert sys.stdout.isatty() and sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2 and sys.stdout.encoding


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="logged: %(message)s")  # has the stream before the run begins
    case = cases.make("epochs")
    run = motley.Run(case.model, case.loss, DataLoader(case.train, case.batch, shuffle=True), case.optimizer, seed=cases.SEED)
    try:
        for epoch in run.epochs(case.epochs):
            body(epoch)
            if epoch.number == 2:
                print("no end yet", end="")
                if sys.argv[1] == "raise":
                    raise ValueError("of the body")
                break
    except ValueError as error:
        print(", then", error, end="")
    print(" and now one")
    print("taken:", any("write" in vars(stream) for stream in (sys.stdout, sys.stderr)))
