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
NOT_FINITE, SCALE_MIN = 0x7FC0, 0x0D80


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


def block_scale(block, levels):
    if not all(math.isfinite(v) and abs(v) <= levels * 2.0**120 for v in block):
        return NOT_FINITE
    largest = max(abs(v) for v in block)
    if largest == 0:
        return 0
    return max(bits(f32(largest / levels)) + 0xFFFF >> 16, SCALE_MIN)


def block_codes(block, scale):
    if scale in (0, NOT_FINITE):
        return [0] * len(block)
    inverse = f32(1 / of_bits(scale << 16))
    return [round(f32(v * inverse)) for v in block]  # half to even


def encode(codec, values):
    if codec == "bf16":
        return b"".join(struct.pack("<H", bf16_code(v)) for v in values)
    size, levels = {"int8": (256, 127), "int4": (64, 7)}[codec]
    scales, codes = b"", b""
    for first in range(0, len(values), size):
        block = values[first:first + size]
        block = block + [0.0] * (size - len(block))
        scale = block_scale(block, levels)
        scales += struct.pack("<H", scale)
        numbers = block_codes(block, scale)
        if codec == "int8":
            codes += struct.pack(f"<{size}b", *numbers)
        else:
            codes += bytes(low + 8 | high + 8 << 4 for low, high in zip(numbers[:32], numbers[32:]))
    return scales + codes


def decode(codec, body, count):
    if codec == "bf16":
        return [of_bits(code << 16) for code in struct.unpack(f"<{count}H", body)]
    size, width = {"int8": (256, 256), "int4": (64, 32)}[codec]
    blocks = -(-count // size)
    scales = struct.unpack(f"<{blocks}H", body[:2 * blocks])
    values = []
    for index, scale in enumerate(scales):
        codes = body[2 * blocks + width * index:][:width]
        numbers = struct.unpack(f"<{width}b", codes) if codec == "int8" else [b % 16 - 8 for b in codes] + [b // 16 - 8 for b in codes]
        values += [f32(number * of_bits(scale << 16)) for number in numbers]
    return values[:count]


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


GOLDEN = {}
for CODEC in ("bf16", "int8", "int4"):
    GOLDEN[f"{CODEC}_plain"] = encode(CODEC, values())
    GOLDEN[f"{CODEC}_feedback"] = encode(CODEC, [f32(v + r) for v, r in zip(values(), residual())])
    GOLDEN[f"{CODEC}_spoiled"] = encode(CODEC, spoiled())

if __name__ == "__main__" and "--write" in sys.argv:
    for name, body in GOLDEN.items():
        (DATA / f"{name}.bin").write_bytes(body)
