"""motley.files(): what a head's script offers comes to machines that join, by content."""

import os
import re
import shutil

import pytest

from conftest import SCRIPTS
from program import settings
from small_disk import mounted

SCRIPT = str(SCRIPTS / "with_files.py")
BLOCK = 1 << 20
BLOCKS = 40
BOTH = settings(train_min_workers=2, train_shares=[1, 1], train_verify=0)


@pytest.fixture
def data(tmp_path):
    """A set of files as the head has it, old enough that their hashes are kept."""
    import torch

    place = tmp_path / "head" / "set"
    (place / "more").mkdir(parents=True)
    samples = torch.randn(64, 4, generator=torch.Generator().manual_seed(3)).numpy().tobytes()
    (place / "samples.bin").write_bytes(samples + os.urandom(BLOCKS * BLOCK - len(samples)))
    (place / "more" / "notes.txt").write_text("more\n")
    (place / "empty").touch()
    for path in place.rglob("*"):
        os.utime(path, (1_500_000_000, 1_500_000_000))
    return place


def variables(motley, home, place):
    return ["env", f"HOME={motley.directory / home}", f"PLACE={place}"]


def start_head(motley, place, options=BOTH):
    head = motley.start("train", SCRIPT, "--run", "run", "--listen", "127.0.0.1:0", "--threads", "1", "--device", "cpu", "--token-file",
                        "token", *options, prefix=variables(motley, "home-head", place))
    head.wait_event("run")
    return head


def join(motley, place, meddle="", name="other"):
    return motley.start("join", "--token-file", "token", SCRIPT, "--threads", "1", "--device", "cpu", "--name", name,
                        prefix=[*variables(motley, "home-other", place), f"MEDDLE={meddle}"])


def place_of(program):
    return re.search(r"the files are at (.*)", "\n".join(program.text))[1]


def missing_of(program):
    """(GB that were missing, GB in all) of a fetch."""
    found = re.search(r"from the head: ([\d.e+-]+) GB of ([\d.e+-]+) GB", "\n".join(program.text))
    return float(found[1]), float(found[2])


def equal(a, b):
    names = sorted(path.relative_to(a).as_posix() for path in a.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(b).as_posix() for path in b.rglob("*") if path.is_file())
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in names)


def test_a_machine_without_data_has_them_from_the_head_and_keeps_them(motley, data, tmp_path):
    nowhere = tmp_path / "other" / "set"
    head = start_head(motley, data)
    other = join(motley, nowhere)
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    assert place_of(head) == str(data)
    kept = place_of(other)
    assert ".cache/motley/data" in kept and not nowhere.exists()
    assert equal(data, type(data)(kept))
    assert {part["worker"] for step in head.named("step") for part in step["workers"]} >= {"other/cpu"}
    motley.audit("run")

    shutil.rmtree(motley.directory / "run")
    assert not (motley.directory / "token").exists()
    head = start_head(motley, data)
    other = join(motley, nowhere)
    assert head.end() == 0 and other.end() == 0, other.story()
    assert place_of(other) == kept
    assert not any("fetching" in line for line in other.text), other.story()


def test_a_copy_of_ones_own_is_used_where_it_is_equal_and_left_alone_where_not(motley, data, tmp_path):
    own = tmp_path / "other" / "set"
    shutil.copytree(data, own)
    head = start_head(motley, data)
    content = bytearray((own / "samples.bin").read_bytes())
    content[5 * BLOCK] ^= 1
    (own / "samples.bin").write_bytes(content)
    wrong = join(motley, own)
    assert wrong.end() == 1, wrong.story()
    assert wrong.error()["code"] == "mismatch" and f"{own / 'samples.bin'} has another content" in wrong.error()["message"]
    assert (own / "samples.bin").read_bytes() == content
    shutil.copy2(data / "samples.bin", own)
    (own / "extra").touch()
    wrong = join(motley, own)
    assert wrong.end() == 1 and f"{own / 'extra'} is on this machine alone" in wrong.error()["message"], wrong.story()
    (own / "extra").unlink()
    other = join(motley, own)
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    assert place_of(other) == str(own)
    assert not any("fetching" in line for line in other.text)


def test_a_fetch_that_was_killed_goes_on(motley, data, tmp_path):
    nowhere = tmp_path / "other" / "set"
    head = start_head(motley, data)
    assert join(motley, nowhere, "dies").end() == 9
    other = join(motley, nowhere)
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    missing, whole = missing_of(other)
    assert round((whole - missing) * 1e9 / BLOCK) == 4, other.story()  # the fifth is a small file's
    assert equal(data, type(data)(place_of(other)))


def test_another_process_of_the_machine_goes_on_where_the_first_one_ended(motley, data, tmp_path):
    head = start_head(motley, data)
    first = join(motley, tmp_path / "other" / "set", "stops")
    first.wait_text("fetching set from the head")
    second = join(motley, tmp_path / "other" / "set", name="second")
    second.wait_text("another process here fetches set")
    first.kill()
    assert head.end() == 0, head.story()
    assert second.end() == 0, second.story()
    assert equal(data, type(data)(place_of(second)))


def test_a_fetch_whose_connection_breaks_goes_on(motley, data, tmp_path):
    head = start_head(motley, data)
    other = join(motley, tmp_path / "other" / "set", "breaks")
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    assert equal(data, type(data)(place_of(other)))


def test_a_flipped_byte_is_never_used(motley, data, tmp_path):
    """The head's disk has another byte than when it was read, and nothing shows it."""
    nowhere = tmp_path / "other" / "set"
    head = start_head(motley, data)
    path, at = data / "samples.bin", 30 * BLOCK + 7
    right = path.read_bytes()

    def write(content):
        with open(path, "r+b") as file:
            file.write(content)
        os.utime(path, (1_500_000_000, 1_500_000_000))

    write(right[:at] + bytes([right[at] ^ 1]) + right[at + 1 :])
    wrong = join(motley, nowhere)
    assert wrong.end() == 1, wrong.story()
    assert "3 times with another content" in wrong.error()["message"]
    write(right)
    other = join(motley, nowhere)
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    missing, whole = missing_of(other)
    assert missing < whole
    assert equal(data, type(data)(place_of(other)))


def test_a_file_that_changed_on_the_head_is_said_by_name(motley, data, tmp_path):
    head = start_head(motley, data)
    (data / "more" / "notes.txt").write_text("less\n")
    wrong = join(motley, tmp_path / "other" / "set")
    assert wrong.end() == 1, wrong.story()
    assert f"{data / 'more' / 'notes.txt'} changed while it was offered" in wrong.error()["message"]
    assert not head.named("step")
    head.stop()


def test_a_link_in_what_is_offered_is_refused(motley, data):
    (data / "more" / "link").symlink_to("/etc/passwd")
    error = motley.fails("train", SCRIPT, "--run", "run", "--listen", "127.0.0.1:0", "--threads", "1", status=2,
                         prefix=variables(motley, "home-head", data))
    assert "symbolic link" in error["message"] and str(data / "more" / "link") in error["message"]


@pytest.fixture
def small_home(tmp_path):
    """A home of 16 MB, where a machine that joins keeps what it fetches."""
    with mounted(tmp_path / "home-other", 16) as place:
        yield place


def test_a_disk_that_is_too_small_is_that_machines_own_trouble(motley, data, tmp_path, small_home):
    head = start_head(motley, data)
    wrong = join(motley, tmp_path / "other" / "set")
    assert wrong.end() == 1, wrong.story()
    assert wrong.error()["code"] == "io" and "set needs" in wrong.error()["message"], wrong.story()
    assert not [path for path in small_home.rglob("tree/*")], "nothing was begun"
    own = tmp_path / "own" / "set"
    shutil.copytree(data, own)  # another one, which has its data
    other = join(motley, own)
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
