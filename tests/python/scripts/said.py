"""said.py OUT SCRIPT [ARGUMENT]…: writes to OUT what this machine would say to others of the first run of SCRIPT, and how many seconds of a
processor that took; ends there."""

import json
import os
import runpy
import sys
import time

from motley._computing import _work
from motley._runs import _arrays
from motley._trials import _compared, _layers


def telling(words):
    def told(*given, **named):
        begun = time.process_time()
        text = words(*given, **named)
        with open(out, "w", encoding="utf-8") as file:
            json.dump({"words": text, "seconds": time.process_time() - begun}, file)
        os._exit(0)

    return told


class Telling:
    words = staticmethod(telling(_layers.words))


class TellingOfArrays:
    OF_ARRAYS = _compared.OF_ARRAYS
    words = staticmethod(telling(_compared.words))


if __name__ == "__main__":
    out, script, *rest = sys.argv[1:]
    sys.argv = [script, *rest]
    sys.path.insert(0, os.path.dirname(script))
    _work._layers, _arrays._compared = Telling, TellingOfArrays
    runpy.run_path(script, run_name="__main__")
