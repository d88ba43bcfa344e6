"""The golden bodies of the codecs are what a second implementation writes, and read as they should."""

import codec_vectors as vectors
import pytest


@pytest.mark.parametrize("name", sorted(vectors.GOLDEN))
def test_golden_file(name):
    assert (vectors.DATA / f"{name}.bin").read_bytes() == vectors.GOLDEN[name]


def test_no_file_without_a_definition():
    assert {path.stem for path in vectors.DATA.glob("*.bin")} == set(vectors.GOLDEN)


@pytest.mark.parametrize("codec, share", [("bf16", 1 / 256), ("int8", 1 / 252), ("int4", 1 / 13.8)])
def test_error_budget(codec, share):
    block = {"bf16": 1, "int8": 256, "int4": 64}[codec]
    values = vectors.values()
    decoded = vectors.decode(codec, vectors.GOLDEN[f"{codec}_plain"], len(values))
    for first in range(0, len(values), block):
        span = values[first:first + block]
        budget = max(max(map(abs, span)) * share, 2.0**-100)
        assert all(abs(a - b) <= budget for a, b in zip(span, decoded[first:first + block]))
