"""grown.py CASE MARKER: as train_case.py, and a process that joins says once that its memory grew: until there is a file MARKER, in which
is its number then."""

import os
import pathlib
import runpy
import sys

from motley import _core
from motley._errors import Error

CASE, MARKER = sys.argv[1], pathlib.Path(sys.argv[2])


def once(*arguments):
    print("is about to serve")
    if MARKER.exists():
        return serve(*arguments)
    MARKER.write_text(str(os.getpid()))
    raise Error("the process that computes on mps has taken 9 GiB", "start it again", "busy")


serve, _core.serve = _core.serve, once
if __name__ == "__main__":
    sys.argv = [sys.argv[0], CASE]
    runpy.run_path(os.path.join(os.path.dirname(__file__), "train_case.py"), run_name="__main__")
