"""A program beside each supervised process: ends it when the supervisor is gone, however that went.

Standard input is a pipe from the supervisor: a line for each process it started, and the end of the pipe is the supervisor's own. Where
the process has a group of its own (its number is negative then), or Ray gave the supervisor one, the group ends, and whatever the process
started ends with it.
"""

import contextlib
import os
import signal
import sys


def main(supervisor: int) -> None:
    for request in (signal.SIGINT, signal.SIGTERM):  # Ray asks the group before it kills it; the supervisor's successor does not wait
        signal.signal(request, signal.SIG_IGN)
    whole_group = hasattr(os, "killpg") and os.getpgrp() == supervisor
    process = 0
    for line in sys.stdin:
        process = int(line)
    if whole_group:
        os.killpg(0, signal.SIGKILL)
    elif process:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


if __name__ == "__main__":
    main(int(sys.argv[1]))
