"""Motley trains one PyTorch model on all the machines you own.

    run = motley.Run(model, loss, train_loader, optimizer)
    for epoch in run.epochs(10):
        print(epoch.number, epoch.loss)

`python train.py` trains with the devices of this machine and prints the line with which another machine joins.
"""

from typing import TYPE_CHECKING, Any

from motley import _core
from motley._content._local import files
from motley._errors import Error
from motley._runs._epoch import Epoch, Step

if TYPE_CHECKING:
    from motley._runs._arrays import ArrayRun
    from motley._runs._fit import fit
    from motley._runs._run import Run
    from motley._state import HeadTensors
    from motley._samples._shards import Shards

__version__: str = _core.version
__all__ = ["ArrayRun", "Epoch", "Error", "HeadTensors", "Run", "Shards", "Step", "files", "fit"]

_TORCH_HINT = "pip install torch; the site of PyTorch names the build for your card"


def __getattr__(name: str) -> Any:
    # What needs torch or NumPy is imported when it is asked for: the command and the core work without.
    if name in ("Run", "fit"):
        _need_torch(f"motley.{name}")
        from motley._runs import _fit, _run

        return {"Run": _run.Run, "fit": _fit.fit}[name]
    if name == "HeadTensors":
        _need_torch(f"motley.{name}")
        from motley import _state

        return _state.HeadTensors
    if name == "Shards":
        _need_torch(f"motley.{name}")
        from motley._samples import _shards

        return _shards.Shards
    if name == "ArrayRun":
        _need("numpy", "motley.ArrayRun", "pip install numpy")
        from motley._runs import _arrays

        return _arrays.ArrayRun
    raise AttributeError(f"module 'motley' has no attribute '{name}'")


def _need_torch(what: str) -> None:
    _need("torch", what, _TORCH_HINT)
    _need("numpy", what, "pip install numpy")  # torch is installed without, and hands out the bytes of a tensor by it


def _need(module: str, what: str, hint: str) -> None:
    try:
        __import__(module)
    except ImportError as error:
        raise Error(f"{what} needs {module}, and this Python has none ({error})", hint, "usage") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
