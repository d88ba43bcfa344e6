"""The golden files of frames and tokens and the examples of docs/formats are what a second implementation writes."""

import re

import pytest
import wire_vectors as vectors

FORMATS = vectors.ROOT / "docs" / "formats"


@pytest.mark.parametrize("name", sorted(vectors.FRAMES | vectors.REFUSED))
def test_frame_file(name):
    assert (vectors.DATA / f"{name}.bin").read_bytes() == (vectors.FRAMES | vectors.REFUSED)[name]


def test_no_file_without_a_definition():
    files = {path.stem for pattern in ("frame_*.bin", "refused_*.bin") for path in vectors.DATA.glob(pattern)}
    assert files == set(vectors.FRAMES | vectors.REFUSED)


def test_example_of_wire_md():
    block = (FORMATS / "wire.md").read_text(encoding="utf-8").split("```")[1]
    assert bytes.fromhex(block) == vectors.FRAMES["frame_gradient"]


def test_examples_of_token_md():
    text = (FORMATS / "token.md").read_text(encoding="utf-8")
    unit_test = (vectors.ROOT / "tests" / "unit" / "fleet" / "token_test.cpp").read_text(encoding="utf-8")
    unit_test = re.sub(r'"\s*\n\s*"', "", unit_test)  # the formatter cuts long literals
    for token in vectors.TOKENS:
        assert token in text.split()
        assert f'"{token}"' in unit_test
    assert len(vectors.PROOF) == 148
    assert f"{vectors.crc32c(vectors.PROOF):08X}" in text
    assert f"0x{vectors.crc32c(vectors.PROOF):08X}U" in unit_test


def test_checksum():
    assert vectors.crc32c(b"123456789") == 0xE3069283
