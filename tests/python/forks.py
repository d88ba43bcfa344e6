"""Processes that begin with torch imported.

Importing it takes three seconds of a processor, and the tests start a hundred scripts. So one process imports it and
nothing else, and forks: each child runs the installed command from its first line to the end of its interpreter.
"""

import gc
import json
import os
import pathlib
import runpy
import select
import signal
import socket
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import tied  # noqa: E402

ORDER_BYTES_MAX = 1 << 17
STATUS_BYTES_MAX = 32


class Forks:
    """Forks on demand; use as a context."""

    def __enter__(self):
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())],
                                            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self._door.close()
        self._server.wait()

    def open(self, command, cwd, **variables):
        """The Python program command[0] with these arguments; `variables`, of its environment, besides those of this one."""
        order = json.dumps({"command": command, "cwd": str(cwd), "environment": os.environ | variables}).encode()
        assert len(order) <= ORDER_BYTES_MAX, len(order)
        ours, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        socket.send_fds(self._door, [order], [out_end, err_end, told.fileno()])
        for handle in (out_end, err_end):
            os.close(handle)
        told.close()
        return Forked(ours, open(out, "rb"), open(err, "rb"))


class Forked:
    """What Program needs of subprocess.Popen."""

    def __init__(self, told, stdout, stderr):
        self._told, self.stdout, self.stderr, self.returncode = told, stdout, stderr, None
        self.pid = int(told.recv(STATUS_BYTES_MAX))

    def poll(self):
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self._take()
        return self.returncode

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            self._take()
        return self.returncode

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _take(self):
        self.returncode = int(self._told.recv(STATUS_BYTES_MAX))
        self._told.close()


def serve(door):
    """Forks until the door is closed. Returns None then, and in a child the words of its command."""
    running = {}  # (process, where its end is told) by the handle that tells of it
    while True:
        for handle in select.select([door, *running], [], [])[0]:
            if handle is not door:
                process, told = running.pop(handle)
                told.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())
                told.close()
                os.close(handle)
                continue
            order, handles, _, _ = socket.recv_fds(door, ORDER_BYTES_MAX, 3)
            if not order:
                return None
            process = os.fork()
            if process == 0:
                for other, (_, told) in running.items():
                    os.close(other)
                    told.close()
                door.close()
                return become(**json.loads(order), handles=handles)
            out, err, told = handles
            os.close(out)
            os.close(err)
            told = socket.socket(fileno=told)
            told.send(str(process).encode())
            running[os.pidfd_open(process)] = process, told


def become(command, cwd, environment, handles):
    """As a process is that was started with these, but that it ends with the one that forks."""
    tied.end_with_parent()
    for target, handle in enumerate([os.open(os.devnull, os.O_RDONLY), *handles[:2]]):
        os.dup2(handle, target)
        os.close(handle)
    os.close(handles[2])
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return command


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import numpy  # noqa: F401
    import torch._dynamo  # noqa: F401  # which every optimizer imports
    import torch.utils.data  # noqa: F401

    gc.freeze()  # pages that nobody writes to are shared
    sys.argv = serve(socket.socket(fileno=int(sys.argv[1]))) or os._exit(0)
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
