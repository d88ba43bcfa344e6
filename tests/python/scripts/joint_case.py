"""As train_case.py, where the first worker takes the processor for an accelerator, and makes the steps of all on it.

dies: the process ends in the midst of it."""

import atexit
import json
import os
import pathlib
import runpy
import signal
import sys

from motley._computing import _computation, _server

MADE = []
WORKERS = []
DIES = 40  # steps, where it is told to


class Staged(_computation.ModelComputation):
    def __init__(self, *arguments):
        super().__init__(*arguments, staged=not WORKERS)
        WORKERS.append(self)
        self._outflow = None  # a gradient that leaves is copied whole, and seen


class Server(_server.Server):
    def open(self, chunks):
        sys.stderr.write("joint on the device\n")
        MADE.append(self)
        super().open(chunks)

    def download(self):
        super().download()
        if "dies" in sys.argv and self.down == DIES * self.host.nbytes:
            os.kill(os.getpid(), signal.SIGKILL)


def tell():
    for server in MADE[:1]:
        told = {"up": server.up, "down": server.down, "model": server.host.nbytes, "gradient_left": bool(server._bound.gradients.any())}
        sys.stderr.write(f"crossed {json.dumps(told)}\n")


_computation.ModelComputation, _server.Server = Staged, Server
if __name__ == "__main__":
    atexit.register(tell)
    runpy.run_path(str(pathlib.Path(__file__).with_name("train_case.py")), run_name="__main__")
