"""A link that stops in the middle of what a head hands out."""

import contextlib
import socket
import threading

BLOCK = 1 << 20
PASSES = 16 * BLOCK  # bytes that come before the rest is withheld


class Withholding:
    """Stands between a head and who joins. It passes on so many bytes of the head's, and then of each connection a block at most."""

    def __init__(self, port):
        self._port = port
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._open = []
        self._passed = 0
        threading.Thread(target=self._let_in, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._door.close()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _let_in(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._door.accept()
                there = socket.create_connection(("127.0.0.1", self._port))
                self._open += [here, there]
                for source, sink, withheld in ((here, there, False), (there, here, True)):
                    threading.Thread(target=self._pass_on, args=(source, sink, withheld), daemon=True).start()

    def _pass_on(self, source, sink, withheld):
        passed = 0
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                passed += len(piece)
                self._passed += len(piece)
                if withheld and passed > BLOCK and self._passed > PASSES:
                    return
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
