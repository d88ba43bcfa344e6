"""A training in one call."""

from typing import Any

from motley._runs._epoch import Epoch
from motley._runs._run import Loss, Run


def fit(model: Any, loss: Loss, train_loader: Any, optimizer: Any, epochs: int, **options: Any) -> list[Epoch]:
    """Run(model, loss, train_loader, optimizer, **options) for so many epochs, in one call. Leaves the trained weights in the model."""
    run = Run(model, loss, train_loader, optimizer, **options)
    for _ in run.epochs(epochs):
        pass
    return run.history
