"""A disk of a few megabytes, for tests that fill it; skips the test where none can be mounted."""

import contextlib
import os
import subprocess

import pytest


@contextlib.contextmanager
def mounted(place, megabytes):
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("a small disk needs root to mount it")
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", place], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
