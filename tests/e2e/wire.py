"""The join token, frames and the control messages that a stranger needs, written from docs/formats alone."""

import base64
import hashlib
import hmac
import pathlib
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
from wire_vectors import CONTROL, GRADIENT, WEIGHTS, crc32c, frame_header, proof_input  # noqa: E402, F401

HELLO, PROOF, PROOF_REPLY, RUN_SPEC, READY, ADMITTED, ATTACH, SYNCED = 1, 2, 3, 4, 5, 6, 7, 8
GRANT, BEGIN, FINISH, HEARTBEAT, BYE = 11, 15, 16, 21, 22
HEADER_BYTES = 80


def parse_token(text):
    letters = text.strip().removeprefix("motley1.")
    body = base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))
    assert struct.unpack("<I", body[-4:])[0] == crc32c(body[:-4])
    flags, run, number, expires = struct.unpack_from("<BQQQ", body)
    port, count = struct.unpack_from("<HB", body, 73)
    addresses, at = [], 76
    for _ in range(count):
        addresses.append(body[at + 1:at + 1 + body[at]].decode())
        at += 1 + body[at]
    return dict(plaintext=bool(flags), run=run, id=number, expires=expires, spki=body[25:57], secret=body[57:73], port=port,
                addresses=addresses)


def token_text(token):
    body = struct.pack("<BQQQ", token["plaintext"], token["run"], token["id"], token["expires"]) + token["spki"] + token["secret"]
    body += struct.pack("<HB", token["port"], len(token["addresses"]))
    for address in token["addresses"]:
        body += struct.pack("<B", len(address)) + address.encode()
    body += struct.pack("<I", crc32c(body))
    return "motley1." + base64.urlsafe_b64encode(body).decode().rstrip("=")


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    """One protobuf field: whole numbers as varint, bytes and texts with their length, ("fixed64", n) and floats as eight bytes."""
    if isinstance(value, tuple):
        return varint(number << 3 | 1) + struct.pack("<Q", value[1])
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(data):
    """The fields of a protobuf message: number -> last value."""
    out, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = number()
        if key & 7 == 0:
            out[key >> 3] = number()
        else:
            size = number() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
            out[key >> 3] = data[at:at + size]
            at += size
    return out


def control(kind, body, *, run, fence=0, protocol=1):
    message = field(kind, body)
    return frame_header(message, type=CONTROL, run=run, fence=fence, protocol=protocol) + message


def hello(token, *, protocol=1, frame_protocol=1, name="stranger/cpu", token_id=None):
    body = field(1, protocol) + field(2, "test 1.0") + field(3, name) + field(4, name.split("/")[0]) + field(5, "cpu")
    body += field(7, ("fixed64", token["id"] if token_id is None else token_id))
    return control(HELLO, body, run=token["run"], protocol=frame_protocol)


def mac(token, role):
    """On a connection without TLS: exporter and keys are zero."""
    text = proof_input(role, bytes(32), bytes(32), bytes(32), token["run"], token["id"], 1)
    return hmac.digest(token["secret"], text, hashlib.sha256)


def proof(token, *, role=b"join"):
    return control(PROOF, field(1, mac(token, role)), run=token["run"])


def attach(token, fence):
    """The first message of the one data connection."""
    return control(ATTACH, field(1, ("fixed64", fence)) + field(2, mac(token, b"lane")), run=token["run"], fence=fence)


def frames(buffer):
    """Takes the frames that are whole out of the buffer: (type, version, chunk, bytes of the chunk, body)."""
    while len(buffer) >= HEADER_BYTES:
        length, total = struct.unpack_from("<II", buffer, 56)
        if len(buffer) < HEADER_BYTES + length:
            return
        version, chunk = struct.unpack_from("<QI", buffer, 40)
        yield buffer[5], version, chunk, total, bytes(buffer[HEADER_BYTES:HEADER_BYTES + length])
        del buffer[:HEADER_BYTES + length]


def layout_entry(name, shape):
    """In a Ready."""
    packed = b"".join(varint(extent) for extent in shape)
    return field(1, field(1, name) + field(2, packed) + field(3, 1) + field(4, 1))


def open_to(token, timeout_s=30):
    return socket.create_connection((token["addresses"][0], token["port"]), timeout=timeout_s)


class Peer:
    """A plaintext connection that may say anything."""

    def __init__(self, token, timeout_s=30):
        self.socket = open_to(token, timeout_s)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Sends as much as the other side takes: it may close in the middle."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def _read(self, count):
        data = b""
        while len(data) < count:
            try:
                piece = self.socket.recv(count - len(data))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            data += piece
        return data

    def message(self):
        """The next control message, as (kind, fields); None at the end of the connection."""
        head = self._read(HEADER_BYTES)
        if head is None:
            return None
        self.run, = struct.unpack_from("<Q", head, 8)
        body = self._read(struct.unpack_from("<I", head, 56)[0])
        if body is None:
            return None
        (kind, content), = fields(body).items()
        return kind, fields(content)

    def closed(self):
        """Reads until the other side closes; the control messages that came."""
        messages = []
        while (message := self.message()) is not None:
            messages.append(message)
        return messages
