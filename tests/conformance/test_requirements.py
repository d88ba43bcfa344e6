"""What is installed is what is listed, and its bytes are known: tools/requirements.txt beside tools/requirements.lock."""

import pathlib
import re

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
PINNED = re.compile(r"([A-Za-z0-9._-]+)(?:\[[a-z0-9]+\])?==(\S+)")


def pins(text):
    found = {}
    for line in text.splitlines():
        match = PINNED.match(line)
        if match:
            found[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
    return found


def test_the_lock_has_every_package_in_its_version_and_with_hashes():
    listed, text = pins((TOOLS / "requirements.txt").read_text()), (TOOLS / "requirements.lock").read_text()
    locked = pins(text)
    assert {name: locked.get(name) for name in listed if name != "torch"} == {name: version for name, version in listed.items()
                                                                              if name != "torch"}
    assert "torch" not in locked  # which build of it is right depends on the machine
    for block in re.split(r"\n(?=[A-Za-z])", text.strip()):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block
