"""A program beside each supervised process: ends it when the supervisor is gone, however that went.

Standard input is a pipe from the supervisor: a line for each process it started, and the end of the pipe is the supervisor's own. Where
the process has a group of its own (its number is negative then), or Ray gave the supervisor one, the group ends, and whatever the process
started ends with it.
"""

import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # it is run as a file, in a Python without anything else

import _system


def main(supervisor: int) -> None:
    # Ray asks the group before it kills it; the supervisor's successor does not wait.
    _system.ignore_interrupts(signal.SIGTERM)
    whole_group = _system.leads_group(supervisor)
    process = 0
    for line in sys.stdin:
        process = int(line)
    if whole_group:
        _system.kill_own_group()
    elif process:
        _system.kill(abs(process), with_group=process < 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
