"""Motley trains one PyTorch model on all the machines you own.

    run = motley.Run(model, loss, train_loader, optimizer)
    for epoch in run.epochs(10):
        print(epoch.number, epoch.loss)

`python train.py` trains with the devices of this machine and prints the line with which another machine joins.
"""

from motley import _core
from motley._errors import Error

__version__: str = _core.version
__all__ = ["Epoch", "Error", "Run", "fit"]


def __getattr__(name: str):
    # What needs torch is imported when it is asked for: the command and the core work without.
    if name not in ("Epoch", "Run", "fit"):
        raise AttributeError(f"module 'motley' has no attribute '{name}'")
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise Error(f"motley.{name} needs torch, and this Python has none ({error})",
                    "pip install torch, or the build for your card from https://pytorch.org/get-started", "usage") from error
    from motley import _run

    return getattr(_run, name)


def __dir__():
    return sorted({*globals(), *__all__})
