"""Where this machine keeps for its user what can be had again, and the machine's key: as cache_directory() of src/runtime/inputs.cpp."""

import os
import pathlib

if os.environ.get("MOTLEY_CACHE"):
    # From where the program was started, also for those that it starts, wherever a script goes afterwards.
    os.environ["MOTLEY_CACHE"] = os.path.abspath(os.environ["MOTLEY_CACHE"])


def directory() -> pathlib.Path:
    """$MOTLEY_CACHE, $XDG_CACHE_HOME/motley or ~/.cache/motley. May not be there yet."""
    own, shared = os.environ.get("MOTLEY_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return pathlib.Path(own)
    # What is relative is to be ignored, says the specification of that variable.
    return (pathlib.Path(shared) if os.path.isabs(shared) else pathlib.Path.home() / ".cache") / "motley"
