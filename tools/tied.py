"""How programs begin that tests and benchmarks start: for `preexec_fn` of subprocess.Popen, on POSIX."""

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def begin():
    """They end with the thread that started them, however that ends (on Linux), and hear Ctrl-C, which that one may ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent()


def end_with_parent():
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
