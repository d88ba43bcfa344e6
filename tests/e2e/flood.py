"""Opens bare connections: flood.py HOST PORT PER_SECOND [SOURCE...]. Says `flooding` once a second's worth has been opened; goes on
until it is killed. A timer is its pace. Each stays open until the other side closes it, or a thousand more have been opened."""

import collections
import itertools
import signal
import socket
import sys
import time


def main():
    host, port, per_second, *sources = sys.argv[1:]
    rate = float(per_second)
    began, kept = time.monotonic(), collections.deque(maxlen=1000)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, 1 / rate, 1 / rate)
    for number, source in enumerate(itertools.cycle(sources or [""])):
        if number == int(rate):
            print("flooding", flush=True)
        while time.monotonic() < began + number / rate:
            signal.sigwait({signal.SIGALRM})
        one = socket.socket()
        one.setblocking(False)
        if source:
            one.bind((source, 0))
        one.connect_ex((host, int(port)))
        kept.append(one)


if __name__ == "__main__":
    main()
