"""mode="auto": before the run begins, machines that join make exact steps of which nothing is kept, and from these follows its mode."""

import contextlib
from collections.abc import Callable, Iterator

from motley import _core
from motley._machines._siblings import Siblings
from motley._runs import _head


@contextlib.contextmanager
def chosen(launch: _core.Launch, script: _core.Script, file: str, against: str | None, prepare: Callable[[], None]) -> Iterator[list[str]]:
    """Meanwhile the launch says the mode of the run with this run file, if that is to be found out; notes of it for the user. against: what
    the script has that rounds do not do. prepare(): tells the script of exact steps."""
    if launch.role != "train" or _core.mode(launch, file) != "auto":
        yield []
        return
    mode, notes = "exact", []
    if against is not None and not launch.resumed:
        notes.append(f"train.mode=auto takes exact steps: {against} is not supported in rounds yet")
    else:
        prepare()
        mode = _head.measured(_core.auto_mode, launch, script, file, Siblings(launch, script))
    before = launch.overrides
    launch.overrides = [*before, f"train.mode={mode}"]
    try:
        yield notes
    finally:
        launch.overrides = before
