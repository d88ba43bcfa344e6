"""As train_case.py, on workers that take the processor for an accelerator: who trains alone keeps weights and optimizer on it."""

import pathlib
import runpy
import sys

from motley._computing import _computation, _device_optimizer


class Staged(_computation.ModelComputation):
    def __init__(self, *arguments):
        super().__init__(*arguments, staged=True)


class DeviceOptimizer(_device_optimizer.DeviceOptimizer):
    def settle(self, kind):
        sys.stderr.write("settled on the device\n")
        super().settle(kind)


_computation.ModelComputation, _device_optimizer.DeviceOptimizer = Staged, DeviceOptimizer
if __name__ == "__main__":
    runpy.run_path(str(pathlib.Path(__file__).with_name("train_case.py")), run_name="__main__")
