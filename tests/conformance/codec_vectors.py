"""The codecs written a second time, from docs/formats/wire.md alone: slow, and in exact steps.

The golden files of the C++ tests come from here (`python codec_vectors.py --write`); test_codec_vectors.py holds both against each
other.
"""

import math
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "unit" / "codec" / "data"

COUNT = 600
NOT_FINITE = 255  # the scale byte of a block of gradients with such an element
GRADIENTS = {"mantissa_bits": 1, "smallest": 63, "largest": 190}  # exponents as in fp32
DELTAS = {"mantissa_bits": 0, "smallest": 27, "largest": 247}


def f32(value):
    """Rounded once: Python's floats are wide enough for the sum, product or quotient of two fp32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def of_bits(number):
    return struct.unpack("<f", struct.pack("<I", number))[0]


def bf16_code(value):
    number = bits(value)
    if number & 0x7FFFFFFF > 0x7F800000:
        return number >> 16 | 0x40
    return number + 0x7FFF + (number >> 16 & 1) >> 16


def block_scale(block, levels, kind):
    """None where there is none; else a number of `kind`, at least as large as the block needs."""
    if not all(math.isfinite(v) and abs(v) <= levels * 2.0**(kind["largest"] - 127) for v in block):
        return None
    largest = max(abs(v) for v in block)
    if largest == 0:
        return 0.0
    dropped = (1 << 23 - kind["mantissa_bits"]) - 1
    return max(of_bits(bits(f32(largest / levels)) + dropped & ~dropped), 2.0**(kind["smallest"] - 127))


def scale_byte(scale, kind):
    if kind is DELTAS:
        return bits(scale) >> 23
    if scale is None:
        return NOT_FINITE
    return (bits(scale) >> 22) - 2 * kind["smallest"] if scale else 0


def scale_of_byte(byte, kind):
    return of_bits(byte << 23 if kind is DELTAS else byte + 2 * kind["smallest"] << 22)


def block_codes(block, scale):
    if not scale:
        return [0] * len(block)
    inverse = f32(1 / scale)
    return [round(f32(v * inverse)) for v in block]  # half to even


def encode(codec, values, kind=GRADIENTS):
    if codec == "bf16":
        return b"".join(struct.pack("<H", bf16_code(v)) for v in values)
    size, levels = {"int8": (256, 127), "int4": (64, 7)}[codec]
    scales, codes = b"", b""
    for first in range(0, len(values), size):
        block = values[first:first + size]
        block = block + [0.0] * (size - len(block))
        scale = block_scale(block, levels, kind)
        scales += bytes([scale_byte(scale, kind)])
        numbers = block_codes(block, scale)
        if codec == "int8":
            codes += struct.pack(f"<{size}b", *numbers)
        else:
            codes += bytes(low + 8 | high + 8 << 4 for low, high in zip(numbers[:32], numbers[32:]))
    return scales + codes


def decode(codec, body, count, kind=GRADIENTS):
    if codec == "bf16":
        return [of_bits(code << 16) for code in struct.unpack(f"<{count}H", body)]
    size, width = {"int8": (256, 256), "int4": (64, 32)}[codec]
    blocks = -(-count // size)
    values = []
    for index, byte in enumerate(body[:blocks]):
        codes = body[blocks + width * index:][:width]
        numbers = struct.unpack(f"<{width}b", codes) if codec == "int8" else [b % 16 - 8 for b in codes] + [b // 16 - 8 for b in codes]
        values += [f32(number * scale_of_byte(byte, kind)) for number in numbers]
    return values[:count]


def encode_delta(codec, target, base):
    """(body, what base becomes)."""
    wanted = [f32(t - b) for t, b in zip(target, base)]
    if codec == "bf16":
        wanted = [0.0 if abs(v) < 2.0**-100 else v for v in wanted]
    body = encode(codec, wanted, DELTAS)
    return body, add_delta(codec, body, base)


def add_delta(codec, body, base):
    return [f32(b + d) for b, d in zip(base, decode(codec, body, len(base), DELTAS))]


def xxh64(data, seed=0):
    """As https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md has it."""
    mask = (1 << 64) - 1
    p1, p2, p3, p4, p5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)

    def rotated(number, by):
        number &= mask
        return (number << by | number >> 64 - by) & mask

    def mixed(lane, word):
        return rotated(lane + word * p2, 31) * p1 & mask

    at = 0
    hash = seed + p5 & mask
    if len(data) >= 32:
        lanes = [seed + p1 + p2 & mask, seed + p2 & mask, seed, seed - p1 & mask]
        for at in range(0, len(data) - 31, 32):
            lanes = [mixed(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at))]
        at += 32
        hash = sum(rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18))) & mask
        for lane in lanes:
            hash = (hash ^ mixed(0, lane)) * p1 + p4 & mask
    hash = hash + len(data) & mask
    while len(data) - at >= 8:
        hash = rotated(hash ^ mixed(0, *struct.unpack_from("<Q", data, at)), 27) * p1 + p4 & mask
        at += 8
    if len(data) - at >= 4:
        hash = rotated(hash ^ struct.unpack_from("<I", data, at)[0] * p1 & mask, 23) * p2 + p3 & mask
        at += 4
    for byte in data[at:]:
        hash = rotated(hash ^ byte * p5 & mask, 11) * p1 & mask
    hash = (hash ^ hash >> 33) * p2 & mask
    hash = (hash ^ hash >> 29) * p3 & mask
    return hash ^ hash >> 32


def values():
    """Large and small, with a block of zeros and one of hardly more."""
    result = [f32((i * 7919 % 1009 - 504) * 2.0**-(i % 23)) for i in range(COUNT)]
    for i in range(64, 128):
        result[i] = 0.0
    for i in range(512, 576):
        result[i] *= 2.0**-110
    return result


def residual():
    return [0.0 if 64 <= i < 128 or i >= 512 else f32((i * 104729 % 997 - 498) * 2.0**-14) for i in range(COUNT)]


def spoiled():
    """In each block of 256 something that no code stands for."""
    result = values()
    result[3], result[300], result[599] = math.nan, -math.inf, 2.0**127
    return result


def held():
    """Where a replica stands that is to become values()."""
    return [f32(v - f32((i * 104729 % 997 - 498) * 2.0**-(12 + i % 7))) for i, v in enumerate(values())]


GOLDEN = {}
for CODEC in ("bf16", "int8", "int4"):
    GOLDEN[f"{CODEC}_plain"] = encode(CODEC, values())
    GOLDEN[f"{CODEC}_feedback"] = encode(CODEC, [f32(v + r) for v, r in zip(values(), residual())])
    GOLDEN[f"{CODEC}_spoiled"] = encode(CODEC, spoiled())
    BODY, MOVED = encode_delta(CODEC, values(), held())
    GOLDEN[f"{CODEC}_delta"] = BODY
    GOLDEN[f"{CODEC}_moved"] = struct.pack(f"<{COUNT}f", *MOVED)

if __name__ == "__main__" and "--write" in sys.argv:
    for name, body in GOLDEN.items():
        (DATA / f"{name}.bin").write_bytes(body)
