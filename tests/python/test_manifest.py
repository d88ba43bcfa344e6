"""What may be offered, how it is read, and what is believed of a list of files that comes from elsewhere."""

import json
import os
import pathlib
import socket
import types

import pytest

from motley._content import _kept, _manifest
from motley._errors import Error


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    place = tmp_path / "home"
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def data(tmp_path):
    place = tmp_path / "data"
    (place / "a").mkdir(parents=True)
    (place / "a" / "long.bin").write_bytes(bytes(range(256)) * 8192 + b"end")
    (place / "empty").write_bytes(b"")
    (place / "b.txt").write_bytes(b"b")
    return place


def refused(call, *words):
    with pytest.raises(Error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), caught.value
    return caught.value


def test_a_directory_becomes_a_list_and_comes_back(data):
    manifest = _kept.manifest_of(data, "data")
    found = [(file.name, file.size, len(file.hashes) // 32) for file in manifest.files]
    assert found == [("a/long.bin", 2097155, 3), ("b.txt", 1, 1), ("empty", 0, 0)]
    assert _manifest.parse(manifest.to_bytes()) == manifest
    assert [(offset, count) for offset, count, _ in manifest.files[0].blocks()] == [(0, 1 << 20), (1 << 20, 1 << 20), (2 << 20, 3)]
    alone = _kept.manifest_of(data / "b.txt", "b.txt")
    assert not alone.directory and _manifest.parse(alone.to_bytes()) == alone


def test_one_byte_is_another_list(data):
    before = _kept.manifest_of(data, "data").to_bytes()
    content = bytearray((data / "a" / "long.bin").read_bytes())
    content[1 << 20] ^= 1
    (data / "a" / "long.bin").write_bytes(content)
    assert _kept.manifest_of(data, "data").to_bytes() != before


def test_files_that_stay_are_read_once(data, monkeypatch):
    for path in data.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    first = _kept.manifest_of(data, "data")
    read = []
    monkeypatch.setattr(_manifest, "read_hashes", lambda path, about: read.append(path) or b"\0" * 32)
    assert _kept.manifest_of(data, "data") == first and not read
    os.utime(data / "b.txt", (1_000_000_001, 1_000_000_001))
    _kept.manifest_of(data, "data")
    assert read == [data / "b.txt"]


def test_a_file_that_is_young_is_read_again(data, monkeypatch):
    _kept.manifest_of(data, "data")
    read = []
    monkeypatch.setattr(_manifest, "read_hashes", lambda path, about: read.append(path.name) or b"\0" * 32)
    _kept.manifest_of(data, "data")
    assert sorted(read) == ["b.txt", "empty", "long.bin"]


def test_damaged_notes_of_hashes_are_read_over(data, home):
    first = _kept.manifest_of(data, "data")
    for path in (home / ".cache/motley/data/hashes").iterdir():
        for wrong in (b"", b"[]", b"\xff", b'{"b.txt": 1}', b'{"b.txt": [[1, 2, 3], "00"]}'):
            path.write_bytes(wrong)
            assert _kept.manifest_of(data, "data") == first


@pytest.mark.skipif(os.name == "nt", reason="Windows has none of these")
def test_links_devices_sockets_and_pipes_are_refused(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path may be short only
    odd = data / "a" / "odd"
    odd.symlink_to("long.bin")
    refused(lambda: _kept.manifest_of(data, "data"), str(odd), "symbolic link")
    odd.unlink()
    odd.symlink_to("..")
    refused(lambda: _kept.manifest_of(data, "data"), "symbolic link")
    odd.unlink()
    os.mkfifo(odd)
    refused(lambda: _kept.manifest_of(data, "data"), "a pipe")
    odd.unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("data/a/odd")
        refused(lambda: _kept.manifest_of(data, "data"), "a socket")
    odd.unlink()
    refused(lambda: _kept.manifest_of(pathlib.Path("/dev/zero"), "zero"), "a device")
    refused(lambda: _kept.manifest_of(tmp_path / "none", "none"), "none")
    (tmp_path / "nothing").mkdir()
    refused(lambda: _kept.manifest_of(tmp_path / "nothing", "nothing"), "no file")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_names_that_not_every_system_has_are_refused(tmp_path):
    wrong = [["a", "A"], ["x/a", "X/b"], ["é", "e\u0301"], ["ß", "ss"], ["con"], ["Nul.txt"], ["a."], ["a "], ["a:b"], ["a\\b"], ["a\nb"]]
    for number, names in enumerate(wrong):
        place = tmp_path / str(number)
        for name in names:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(b"x")
        refused(lambda place=place: _kept.manifest_of(place, "data"), "name")
    (tmp_path / "raw").mkdir()
    os.close(os.open(os.fsencode(tmp_path / "raw") + b"/\xff", os.O_CREAT | os.O_WRONLY))
    refused(lambda: _kept.manifest_of(tmp_path / "raw", "raw"), "no text")


def test_a_file_that_changes_while_it_is_read_is_refused(data):
    path = data / "b.txt"
    about = os.lstat(path)
    path.write_bytes(b"bb")
    refused(lambda: _manifest.read_hashes(path, about), "changed")
    about = os.lstat(path)
    path.unlink()
    if os.name != "nt":
        path.symlink_to("empty")
        refused(lambda: _manifest.read_hashes(path, about), "b.txt")


def listed(**change):
    files = [["a/b", 3, "00" * 32], ["c", 0, ""]]
    found = {"motley": 1, "name": "set", "directory": True, "files": files, **change}
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()


def test_lists_from_elsewhere_are_not_believed():
    whole = listed()
    assert _manifest.parse(whole).size == 3
    for end in range(len(whole)):
        refused(lambda end=end: _manifest.parse(whole[:end]))
    wrong = [b"[]", b"\xff", whole + b" ", whole.replace(b'"c"', b'"c" '), listed(more=1), listed(motley=2), listed(name=1),
             listed(name="a/b"), listed(name=".."), listed(directory=1), listed(directory=False), listed(files=[]), listed(files={}),
             listed(files=[["a", 0]])]
    files = [("a", 1, "00" * 31), ("a", 1, "00" * 64), ("a", -1, ""), ("a", 1.0, "00" * 32), ("a", True, "00" * 32), ("a", 1 << 51, ""),
             (1, 0, ""), ("a", 0, 1)]
    wrong += [listed(files=[file]) for file in files]
    names = ["../c", "/c", "b//c", "b/../../c", "./c", "b/", "", "b\\c", "C:c", "nul", "b/aux.txt", "c.", "\x00", "\u202e", "a" * 256,
             "a/" * 40 + "a"]
    wrong += [listed(files=[[name, 0, ""]]) for name in names] + [listed(files=[["X", 0, ""]]).replace(b"X", b"\\ud800")]
    twins = [("a", "a"), ("a", "A"), ("a", "a/b"), ("a", "A/b"), ("a/b", "a")]
    wrong += [listed(files=[[name, 0, ""] for name in pair]) for pair in twins]
    for each in wrong:
        refused(lambda each=each: _manifest.parse(each))


def test_too_many_files_for_one_list(monkeypatch, data):
    monkeypatch.setattr(_manifest, "MANIFEST_BYTES_MAX", 100)
    refused(lambda: _kept.manifest_of(data, "data").to_bytes(), "too many")


# --- what a machine keeps ---


def filled(manifest, content):
    kept = _kept.Set(manifest)
    missing = kept.begin()
    for wanted, places in missing.items():
        kept.put(places, content[wanted])
    kept.finish()
    return kept


def blocks_of(root, manifest):
    found = {}
    for file in manifest.files:
        text = (root / file.name if manifest.directory else root).read_bytes()
        found.update({wanted: text[offset : offset + count] for offset, count, wanted in file.blocks()})
    return found


def let_go(kept):
    kept._use.close()


def test_what_was_put_is_not_asked_for_again(data):
    manifest = _kept.manifest_of(data, "data")
    content = blocks_of(data, manifest)
    kept = _kept.Set(manifest)
    assert not kept.is_whole()
    missing = kept.begin()
    assert set(missing) == set(content)
    first = next(iter(missing))
    kept.put(missing[first], content[first])
    again = _kept.Set(manifest).begin()  # a fetch that was cut off
    assert set(again) == set(content) - {first}
    for wanted, places in again.items():
        kept.put(places, content[wanted])
    kept.finish()
    assert kept.is_whole()
    for file in manifest.files:
        assert (kept.path / file.name).read_bytes() == (data / file.name).read_bytes()
    (kept.path / "b.txt").unlink()
    assert not kept.is_whole()
    assert len(kept.begin()) == 1


def test_equal_blocks_come_once(tmp_path):
    place = tmp_path / "twins"
    place.mkdir()
    for name in ("x", "y"):
        (place / name).write_bytes(b"t" * (1 << 20) * 2)
    manifest = _kept.manifest_of(place, "twins")
    missing = _kept.Set(manifest).begin()
    assert [len(places) for places in missing.values()] == [4]


def test_what_was_not_used_for_longest_goes_first(tmp_path, monkeypatch, home):
    kept = []
    for number in range(3):
        place = tmp_path / f"set{number}"
        place.mkdir()
        (place / "f").write_bytes(os.urandom(1 << 20))
        manifest = _kept.manifest_of(place, place.name)
        kept.append(filled(manifest, blocks_of(place, manifest)))
        os.utime(kept[-1].home / "used", (1000 - number, 1000 - number))  # the last was not used for longest
    monkeypatch.setattr(_kept, "LIMIT_BYTES", 5 << 19)
    _kept._make_room(0, "x")
    assert all(each.home.is_dir() for each in kept), "all are in use"
    for each in kept[1:]:
        let_go(each)
    _kept._make_room(1 << 20, "x")
    assert [each.home.is_dir() for each in kept] == [True, True, False]


def test_a_disk_that_is_too_small_is_an_error_before_anything_comes(data, monkeypatch):
    manifest = _kept.manifest_of(data, "data")
    kept = _kept.Set(manifest)
    monkeypatch.setattr(_kept.shutil, "disk_usage", lambda _: types.SimpleNamespace(free=1 << 20))
    error = refused(kept.begin, "needs", "GB")
    assert error.code == "io" and "make room" in error.hint
