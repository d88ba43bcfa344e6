"""Rounds of local steps, as far as a script has to do with them."""

from typing import Any

from motley import _core
from motley._errors import Error

CHOICES = (None, "exact", "rounds", "auto")
HINT = "--set train.mode=exact"


class Rounds:
    """How the versions of a run count in steps of its optimizer. `local`: of a round; 0: each version is a step. per_epoch: steps."""

    def __init__(self, local: int, per_epoch: int):
        self._local, self._per_epoch = local, per_epoch

    def __bool__(self) -> bool:
        return self._local > 0

    def told(self) -> dict[str, int]:
        """For whom they are made of again."""
        return {"local": self._local, "per_epoch": self._per_epoch}

    def steps(self, version: int) -> int:
        if not self:
            return version
        rounds = -(-self._per_epoch // self._local)  # the last of an epoch may be short
        return version // rounds * self._per_epoch + min(version % rounds * self._local, self._per_epoch)


def of(launch: _core.Launch, file: str, per_epoch: int) -> Rounds:
    """Those of a run with this run file. A plan measures exact steps, from which the others follow."""
    return Rounds(_core.local_steps(launch, file) if launch.role != "plan" else 0, per_epoch)


def against(asks: dict[str, Any]) -> str | None:
    """The first of these that a run has, by the name that the script knows it by."""
    return next((name for name, has in asks.items() if has), None)


def check(asks: dict[str, Any]) -> None:
    """Errors: a run in rounds has one of these. It would be another training."""
    name = against(asks)
    if name is not None:
        raise Error(f"{name} is not supported with train.mode = \"rounds\" yet", HINT)
