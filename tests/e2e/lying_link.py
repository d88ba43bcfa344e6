"""A link of a plain-text worker that lies: what the worker sends of gradients is changed on its way, the worker knows nothing of it."""

import collections
import contextlib
import functools
import socket
import struct
import threading

from wire import GRADIENT, HEADER_BYTES, crc32c

LIES = ("negated", "outdated", "rarely")
BEFORE, RARELY = 20, 50  # leases: how old what is outdated is, and one in so many
SOUND = 20  # leases before the first lie: what is usual is known from what others sent before


SIGNS = {0: b"\0\0\0\x80", 1: b"\0\x80"}  # by codec: of a number of fp32, of bf16


@functools.lru_cache(maxsize=64)
def signs(length, codec):
    """What is to be changed in so many bytes for other signs of all numbers, and by that of their CRC, which is linear."""
    mask = SIGNS[codec] * (length // len(SIGNS[codec]))
    return int.from_bytes(mask, "little"), crc32c(mask) ^ crc32c(bytes(length))


class LyingLink:
    """Stands between a head and a worker. told(lease) is called with the number of each lease, from the first lie on."""

    def __init__(self, address, port, lie, told=lambda lease: None):
        self._to, self._lie, self._told = (address, port), lie, told
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._open, self._leases = [], {}  # by subject: the number of the lease
        self._sent = collections.OrderedDict()  # by (number, chunk, offset): body and its CRC
        threading.Thread(target=self._let_in, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._door.close()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @property
    def lying(self):
        """Leases since the first lie."""
        return max(0, len(self._leases) - SOUND)

    def _let_in(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._door.accept()
                there = socket.create_connection(self._to)
                self._open += [here, there]
                for each in (here, there):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._frames, args=(here, there), daemon=True).start()
                threading.Thread(target=self._bytes, args=(there, here), daemon=True).start()

    def _bytes(self, source, sink):
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 18):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)

    def _frames(self, source, sink):
        buffer = bytearray()
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 18):
                buffer += piece
                while len(buffer) >= HEADER_BYTES:
                    length = HEADER_BYTES + struct.unpack_from("<I", buffer, 56)[0]
                    if len(buffer) < length:
                        break
                    frame = buffer[:length]
                    del buffer[:length]
                    sink.sendall(self._changed(frame) if frame[5] == GRADIENT else frame)
            sink.shutdown(socket.SHUT_WR)

    def _changed(self, frame):
        lease, = struct.unpack_from("<Q", frame, 32)
        if lease not in self._leases:
            self._leases[lease] = len(self._leases)
            if self.lying:
                self._told(self._leases[lease])
        number = self._leases[lease]
        chunk, offset = struct.unpack_from("<II", frame, 48)
        crc, = struct.unpack_from("<I", frame, 72)
        body = bytes(frame[HEADER_BYTES:])
        if self._lie == "outdated":
            self._sent[number, chunk, offset] = body, crc
            while next(iter(self._sent))[0] < number - BEFORE:
                self._sent.popitem(last=False)
        if number < SOUND:
            return frame
        if self._lie == "outdated":
            body, crc = self._sent.get((number - BEFORE, chunk, offset), (body, crc))
            if len(body) != len(frame) - HEADER_BYTES:
                return frame
        elif frame[64] in SIGNS and (self._lie == "negated" or number % RARELY == 0):
            bits, other = signs(len(body), frame[64])
            body = (int.from_bytes(body, "little") ^ bits).to_bytes(len(body), "little")
            crc ^= other
        struct.pack_into("<I", frame, 72, crc)
        struct.pack_into("<I", frame, 76, crc32c(bytes(frame[:76])))
        frame[HEADER_BYTES:] = body
        return frame
