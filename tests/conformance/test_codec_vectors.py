"""The golden bodies of the codecs are what a second implementation writes, and read as they should."""

import codec_vectors as vectors
import pytest


@pytest.mark.parametrize("name", sorted(vectors.GOLDEN))
def test_golden_file(name):
    assert (vectors.DATA / f"{name}.bin").read_bytes() == vectors.GOLDEN[name]


def test_no_file_without_a_definition():
    assert {path.stem for path in vectors.DATA.glob("*.bin")} == set(vectors.GOLDEN)


@pytest.mark.parametrize("codec, share", [("bf16", 1 / 256), ("int8", 1 / 169), ("int4", 1 / 9.33)])
def test_error_budget(codec, share):
    block = {"bf16": 1, "int8": 256, "int4": 64}[codec]
    values = vectors.values()
    decoded = vectors.decode(codec, vectors.GOLDEN[f"{codec}_plain"], len(values))
    for first in range(0, len(values), block):
        span = values[first:first + block]
        budget = max(max(map(abs, span)) * share, 2.0**-64)
        assert all(abs(a - b) <= budget for a, b in zip(span, decoded[first:first + block]))


@pytest.mark.parametrize("codec, share", [("bf16", 1 / 256), ("int8", 1 / 127), ("int4", 1 / 7)])
def test_delta_budget(codec, share):
    block = {"bf16": 1, "int8": 256, "int4": 64}[codec]
    target, base = vectors.values(), vectors.held()
    _, moved = vectors.encode_delta(codec, target, base)
    for first in range(0, len(target), block):
        span = range(first, min(first + block, len(target)))
        budget = max(abs(target[i] - base[i]) for i in span) * share
        assert all(abs(moved[i] - target[i]) <= budget + abs(target[i]) * 2.0**-23 + 2.0**-100 for i in span)


@pytest.mark.parametrize("codec, size", [("int8", 256), ("int4", 64)])
def test_scales_of_deltas_are_exponents(codec, size):
    scales = vectors.GOLDEN[f"{codec}_delta"][:-(-vectors.COUNT // size)]
    assert any(scales) and all(scale == 0 or 27 <= scale <= 247 for scale in scales)


def test_hash_is_xxh64():
    assert vectors.xxh64(b"") == 0xEF46DB3751D8E999
    assert vectors.xxh64(b"abc") == 0x44BC2CF5AD770999
    assert vectors.xxh64(b"Nobody inspects the spammish repetition") == 0xFBCEA83C8A378BF1
    assert vectors.xxh64(b"I want an unsigned 64-bit seed!", 1) == 0xCE5087F12470D961
    assert vectors.xxh64(vectors.GOLDEN["int8_moved"]) == 0xD508CD01F53CB03C
