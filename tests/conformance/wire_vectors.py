"""Frames and join tokens written a second time, from docs/formats alone.

The golden files of the C++ tests come from here (`python wire_vectors.py --write`) and test_wire_vectors.py holds them, the
examples in docs/formats and this file against each other.
"""

import base64
import functools
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "unit" / "wire" / "data"

CONTROL, WEIGHTS, GRADIENT, STATISTIC, ACK, BLOCK, BLOB = 1, 2, 3, 4, 5, 6, 10


def crc32c_of_byte(crc: int) -> int:
    for _ in range(8):
        crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc


CRC32C_OF_BYTES = [crc32c_of_byte(byte) for byte in range(256)]


@functools.lru_cache(maxsize=64)
def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC32C_OF_BYTES[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def frame_header(body=b"", *, type, flags=0, run=0, fence=0, pass_=0, subject=0, version=0, chunk=0, offset=0, total=None,
                 codec=0, shard=0, magic=0x594C544D, protocol=1, reserved=0, order=0, length=None, header_crc=None):
    length = len(body) if length is None else length
    total = length if total is None else total
    head = struct.pack("<IBBHQQQQQIIIIBBHII", magic, protocol, type, flags, run, fence, pass_, subject, version, chunk, offset,
                       length, total, codec, shard, reserved, order, crc32c(body))
    assert len(head) == 76
    return head + struct.pack("<I", crc32c(head) if header_crc is None else header_crc)


RUN, FENCE, PASS = 0x1122334455667788, 0x0000000200000007, 0x0100000000000005
BODY = struct.pack("<ff", 1.0, -2.5)
NAMES = dict(run=RUN, fence=FENCE, pass_=PASS)

FRAMES = {  # accepted
    "frame_control": frame_header(b"\x4a\x00", type=CONTROL, run=RUN),
    "frame_weights": frame_header(BODY, type=WEIGHTS, version=6, chunk=0, **NAMES),
    "frame_weights_in_order": frame_header(BODY, type=WEIGHTS, version=6, chunk=0, order=0x01020304, **NAMES),
    "frame_weights_delta": frame_header(BODY, type=WEIGHTS, subject=0xFBCEA83C8A378BF1, version=6, chunk=1, offset=4, total=258, codec=2,
                                        **NAMES),
    "frame_gradient": frame_header(BODY, type=GRADIENT, subject=9, version=5, chunk=3, offset=8, total=16, **NAMES),
    "frame_statistic": frame_header(BODY, type=STATISTIC, subject=9, version=5, chunk=4, shard=1, flags=0x8001, **NAMES),
    "frame_ack": frame_header(type=ACK, subject=9, **NAMES),
    "frame_block": frame_header(BODY, type=BLOCK, run=RUN, subject=0xFEDCBA9876543210, offset=262144, total=1 << 20),
    "frame_blob": frame_header(BODY, type=BLOB, run=RUN, subject=0xFEDCBA9876543210, offset=0xFFFFFFF0, total=0xFFFFFFFF),
}
REFUSED = {
    "refused_magic": frame_header(type=CONTROL, magic=0x594C544E),
    "refused_http": b"GET / HTTP/1.1\r\nHost: desktop\r\n".ljust(80, b" "),
    "refused_tls": (b"\x16\x03\x01\x02\x00\x01" + bytes(80))[:80],
    "refused_header_crc": frame_header(type=CONTROL, header_crc=0xDEADBEEF),
    "refused_protocol": frame_header(type=CONTROL, protocol=2),
    "refused_type_0": frame_header(type=0),
    "refused_type_7": frame_header(type=7),
    "refused_type_255": frame_header(type=255),
    "refused_length": frame_header(type=CONTROL, length=(8 << 20) + 1),
    "refused_length_max": frame_header(type=GRADIENT, length=0xFFFFFFFF),
    "refused_segment_length": frame_header(type=GRADIENT, length=(1 << 20) + 1),
    "refused_reserved": frame_header(type=CONTROL, reserved=1),
    "refused_order": frame_header(type=GRADIENT, order=1 << 31),
    "refused_codec": frame_header(BODY, type=WEIGHTS, codec=4),
    "refused_outside": frame_header(BODY, type=WEIGHTS, offset=1, total=8),
    "refused_overflow": frame_header(BODY, type=GRADIENT, offset=0xFFFFFFFF, total=7),
}


def token_text(*, plaintext=False, run, id, expires, spki, secret, port, addresses):
    body = struct.pack("<BQQQ", plaintext, run, id, expires) + spki + secret + struct.pack("<HB", port, len(addresses))
    for address in addresses:
        body += struct.pack("<B", len(address)) + address.encode()
    body += struct.pack("<I", crc32c(body))
    return "motley1." + base64.urlsafe_b64encode(body).decode().rstrip("=")


TOKEN = dict(run=RUN, id=0x99AABBCCDDEEFF00, spki=bytes(range(32)), secret=bytes(range(160, 176)), port=29500)
TOKENS = [
    token_text(**TOKEN, expires=1_800_000_000, addresses=["192.168.1.7", "fe80::1", "desktop.local"]),
    token_text(**TOKEN, expires=0, addresses=["127.0.0.1"], plaintext=True),
]


def proof_input(role, exporter, spki_head, spki_joiner, run, token_id, protocol):
    numbers = struct.pack("<Q", run), struct.pack("<Q", token_id), struct.pack("<I", protocol)
    return b"".join(struct.pack("<I", len(piece)) + piece
                    for piece in (role, exporter, spki_head, spki_joiner, *numbers))


PROOF = proof_input(b"join", b"\xEE" * 32, TOKEN["spki"], b"\x17" * 32, RUN, TOKEN["id"], 1)


def main():
    for name, data in {**FRAMES, **REFUSED}.items():
        print(name, data.hex())
        if "--write" in sys.argv[1:]:
            (DATA / f"{name}.bin").write_bytes(data)
    for text in TOKENS:
        print(text)
    print(len(PROOF), f"{crc32c(PROOF):08X}")


if __name__ == "__main__":
    main()
