"""mac.py CASE [FAULT]: as train_case.py, with the processor taken for Apple's GPU; FAULT: what is wrong with it, where the variable
MAC is set. Prints its epochs and, at its end, the sizes of pass that it saw as JSON on standard error.

none: nothing. sizes: gradients are a thousand times too large after a pass of another size. lost: the work of a pass is sometimes not
done. often: likewise, in one of four. words: sometimes the driver says so, on standard error, and in words that mean too long.
"""

import json
import os
import runpy
import sys

import torch

from motley._computing import _care, _computation

CASE, FAULT = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 and "MAC" in os.environ else "none"
BEGIN = 40  # passes: a trial has fewer
WORDS = (b"Error: command buffer exited with error status.\n\tThe Metal Performance Shaders operations encoded on it may not have "
         b"completed.\n\tError: (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)\n")


class Mac(_care.Care):
    def __init__(self):
        super().__init__(torch.device("cpu"))
        self.passes, self.sizes, self.before, self.dropped = 0, set(), 0, False

    def mark(self):
        before = self._sum.clone()
        super().mark()
        if self.dropped:
            self._sum.copy_(before)
            self.dropped = False

    def scale(self, size):
        """Of the gradient of a pass of so many samples."""
        self.passes += 1
        self.sizes.add(size)
        other, self.before = self.before not in (0, size), size
        if FAULT == "sizes" and other and size > 8:
            return 1e3
        if (FAULT == "lost" and self.passes in (BEGIN, BEGIN + 7)) or (FAULT == "often" and self.passes > BEGIN and self.passes % 4 == 0):
            self.dropped = True
            return 0.0
        if FAULT == "words" and self.passes == BEGIN:
            os.write(2, WORDS)
            return 0.0
        return 1.0


def backward(self, mean, weight):
    plain(self, mean, weight * self._care.scale(round(weight * self._repeats)))


macs = []
plain, _computation.ModelComputation._backward = _computation.ModelComputation._backward, backward
_care.of = lambda _: macs.append(Mac()) or macs[-1]
if __name__ == "__main__":
    sys.argv = [sys.argv[0], CASE]
    try:
        runpy.run_path(os.path.join(os.path.dirname(__file__), "train_case.py"), run_name="__main__")
    finally:
        for mac in macs:
            sys.stderr.write(f"saw {json.dumps([mac.passes, sorted(mac.sizes)])}\n")
