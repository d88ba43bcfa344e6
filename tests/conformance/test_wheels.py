"""tools/wheels: what it reads of extensions, and that it packs the same bytes. The wheels themselves are `.ci/run wheels`."""

import base64
import csv
import dataclasses
import hashlib
import json
import pathlib
import struct
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/wheels"))
import checks  # noqa: E402
import package  # noqa: E402
import sources  # noqa: E402
import targets  # noqa: E402

TARGETS = {target.name: target for target in targets.TARGETS}
# The checks know more processors than there are targets.
ARM = dataclasses.replace(TARGETS["linux-x86_64"], name="linux-aarch64", processor="aarch64")
INTEL = dataclasses.replace(TARGETS["macos-arm64"], name="macos-x86_64", processor="x86_64")


def elf(needed, versions, exported, machine=62, rpath=None):
    """A shared object with as much in it as the checks read."""
    strings = b"\0"

    def string(text):
        nonlocal strings
        at = len(strings)
        strings += text.encode() + b"\0"
        return at

    dynamic = b"".join(struct.pack("<qQ", 1, string(name)) for name in needed)
    dynamic += struct.pack("<qQ", 29, string(rpath)) if rpath else b""
    needs = struct.pack("<HHIII", 1, len(versions), string("libc.so.6"), 16, 0)
    for i, version in enumerate(versions):
        needs += struct.pack("<IHHII", 0, 0, i + 2, string(version), 16 if i + 1 < len(versions) else 0)
    symbols = bytes(24) + struct.pack("<IBBHQQ", string("memcpy"), 0x12, 0, 0, 0, 0)
    symbols += b"".join(struct.pack("<IBBHQQ", string(name), 0x12, 0, 7, 64, 8) for name in exported)
    contents = [(0, b""), (6, dynamic), (11, symbols), (0x6FFFFFFE, needs), (3, strings)]
    body, table = b"", b""
    for kind, content in contents:
        table += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, 64 + len(body), len(content), 4, 0, 1, 0)
        body += content
    header = checks.MAGIC_ELF + bytes(10)
    header += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, 5, 4)
    return header + body + table


def macho(libraries, oldest, symbols, processor=0x0100000C, signed=True):
    """Likewise, of macOS. `symbols`: name, kind, description."""
    commands = []
    for name in libraries:
        text = name.encode() + b"\0" * (8 - len(name) % 8)
        commands.append(struct.pack("<IIIIII", 0x0C, 24 + len(text), 24, 0, 0, 0) + text)
    commands.append(struct.pack("<IIIIII", 0x32, 24, 1, oldest[0] << 16 | oldest[1] << 8, 0, 0))
    if signed:
        commands.append(struct.pack("<IIII", 0x1D, 16, 0, 0))
    size = sum(map(len, commands)) + 24
    strings, table = b"\0", b""
    for name, kind, description in symbols:
        table += struct.pack("<IBBHQ", len(strings), kind, 0, description, 0)
        strings += name.encode() + b"\0"
    commands.append(struct.pack("<IIIIII", 0x02, 24, 32 + size, len(symbols), 32 + size + len(table), len(strings)))
    header = checks.MAGIC_MACHO + struct.pack("<IIIIIII", processor, 0, 6, len(commands), size, 0, 0)
    return header + b"".join(commands) + table + strings


def pe(imported, exported, machine=0x8664):
    """Likewise, of Windows: one section, loaded where it lies in the file."""
    start, first = 0x40, 0x200
    body = b""

    def put(content):
        nonlocal body
        body += content
        return first + len(body) - len(content)

    names = [put(name.encode() + b"\0") for name in imported]
    imports = put(b"".join(struct.pack("<IIIII", 1, 0, 0, name, 1) for name in names) + bytes(20))
    table = put(struct.pack(f"<{len(exported)}I", *[put(name.encode() + b"\0") for name in exported]))
    exports = put(bytes(24) + struct.pack("<IIII", len(exported), 0, table, 0))
    directories = struct.pack("<IIII", exports, 40, imports, 40) + bytes(14 * 8)
    optional = struct.pack("<H", 0x20B) + bytes(110) + directories
    header = b"MZ" + bytes(start - 6) + struct.pack("<I", start) + b"PE\0\0"
    header += struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, len(optional), 0) + optional
    header += b".rdata\0\0" + struct.pack("<IIII", len(body), first, len(body), first) + bytes(16)
    return header + bytes(first - len(header)) + body


ENTRY = [checks.ENTRY]
GOOD_ELF = (["libc.so.6", "libm.so.6"], ["GLIBC_2.2.5", "GLIBC_2.28"], ENTRY)
GOOD_SYMBOLS = [("_PyInit__core", 0x0F, 0), ("_PyErr_Occurred", 0x01, 0xFE00), ("_memcpy", 0x01, 0x0100), ("_own", 0x0E, 0),
                ("__ZdlPv", 0x0F, 0x80)]
GOOD_PE = (["python3.dll", "KERNEL32.dll", "api-ms-win-crt-heap-l1-1-0.dll"], [*ENTRY, "_ZTVN8nanobind4abi112python_errorE"])
GOOD_MACHO = (["/usr/lib/libSystem.B.dylib"], (11, 0), GOOD_SYMBOLS)


def test_a_good_extension_passes():
    checks.check_extension(elf(*GOOD_ELF), TARGETS["linux-x86_64"])
    checks.check_extension(elf(*GOOD_ELF, machine=183), ARM)
    checks.check_extension(macho(*GOOD_MACHO), TARGETS["macos-arm64"])
    checks.check_extension(macho(*GOOD_MACHO, processor=0x01000007, signed=False), INTEL)
    checks.check_extension(pe(*GOOD_PE), TARGETS["windows-x86_64"])


@pytest.mark.parametrize("made, word", [
    (elf(["libc.so.6", "libcurl.so.4"], ["GLIBC_2.28"], ENTRY), "libcurl.so.4"),
    (elf(["libc.so.6"], ["GLIBC_2.2.5", "GLIBC_2.34"], ENTRY), "GLIBC_2.34"),
    (elf(["libc.so.6"], ["GLIBCXX_3.4"], ENTRY), "GLIBCXX_3.4"),
    (elf(["libc.so.6"], ["GLIBC_2.28"], [checks.ENTRY, "SSL_new"]), "SSL_new"),
    (elf(["libc.so.6"], ["GLIBC_2.28"], []), checks.ENTRY),
    (elf(*GOOD_ELF, machine=183), "machine"),
    (elf(*GOOD_ELF, rpath="/opt/somewhere"), "/opt/somewhere"),
    (macho(*GOOD_MACHO), "expected a file of Linux"),
])
def test_what_a_linux_extension_may_not_have(made, word):
    with pytest.raises(sources.Failed, match=word):
        checks.check_extension(made, TARGETS["linux-x86_64"])


@pytest.mark.parametrize("made, word", [
    (macho(["/usr/lib/libSystem.B.dylib", "/opt/homebrew/lib/libssl.3.dylib"], (11, 0), GOOD_SYMBOLS), "homebrew"),
    (macho(["/usr/lib/libSystem.B.dylib"], (13, 0), GOOD_SYMBOLS), "macOS 11"),
    (macho(["/usr/lib/libSystem.B.dylib"], (11, 0), [*GOOD_SYMBOLS, ("__ZTISt9exception", 0x0F, 0x80)]), "ZTISt9exception"),
    (macho(["/usr/lib/libSystem.B.dylib"], (11, 0), GOOD_SYMBOLS[1:]), "PyInit__core"),
    (macho(["/usr/lib/libSystem.B.dylib"], (11, 0), [*GOOD_SYMBOLS, ("_SSL_new", 0x01, 0xFE00)]), "SSL_new"),
    (macho(["/usr/lib/libSystem.B.dylib"], (11, 0), [*GOOD_SYMBOLS, ("_newer", 0x01, 0x0140)]), "_newer"),
    (macho(*GOOD_MACHO, processor=0x01000007), "processor"),
    (macho(*GOOD_MACHO, signed=False), "signature"),
])
def test_what_an_extension_of_macos_may_not_have(made, word):
    with pytest.raises(sources.Failed, match=word):
        checks.check_extension(made, TARGETS["macos-arm64"])


def test_what_a_program_of_macos_may_not_have(tmp_path):
    made = tmp_path / "unit_base"
    made.write_bytes(macho(["/usr/lib/libSystem.B.dylib"], (11, 0), [("_main", 0x0F, 0), ("__ZTISt9exception", 0x0F, 0x80)]))
    checks.check_macos_program(made, TARGETS["macos-arm64"])
    for wrong, word in [(macho(["/opt/homebrew/lib/libssl.3.dylib"], (11, 0), []), "homebrew"),
                        (macho(["/usr/lib/libSystem.B.dylib"], (13, 0), []), "macOS 11"),
                        (macho(["/usr/lib/libSystem.B.dylib"], (11, 0), [("_newer", 0x01, 0x0140)]), "_newer"),
                        (elf(*GOOD_ELF), "expected a file of Darwin")]:
        made.write_bytes(wrong)
        with pytest.raises(sources.Failed, match=word):
            checks.check_macos_program(made, TARGETS["macos-arm64"])


@pytest.mark.parametrize("made, word", [
    (pe(["python3.dll", "libstdc++-6.dll"], ENTRY), "libstdc"),
    (pe(["python3.dll", "python313.dll"], ENTRY), "python313.dll"),
    (pe(["KERNEL32.dll"], ENTRY), "python3.dll"),
    (pe(["python3.dll"], [*ENTRY, "SSL_new"]), "SSL_new"),
    (pe(["python3.dll"], ["PyInit_other"]), "PyInit__core"),
    (pe(["python3.dll"], []), "PyInit__core"),
    (pe(*GOOD_PE, machine=0x14C), "machine"),
    (elf(*GOOD_ELF), "expected a file of Windows"),
])
def test_what_an_extension_of_windows_may_not_have(made, word):
    with pytest.raises(sources.Failed, match=word):
        checks.check_extension(made, TARGETS["windows-x86_64"])


def test_where_it_was_built_is_not_in_it():
    with pytest.raises(sources.Failed, match="/opt/somewhere/src/wire"):
        checks.check_extension(elf(*GOOD_ELF) + b"\0/opt/somewhere/src/wire/frame.cpp\0", TARGETS["linux-x86_64"], "/opt/somewhere")


def test_an_extension_of_this_machine_is_no_wheel():
    found = list((ROOT / "build/python-env").glob("lib/python*/site-packages/motley/_core*.so"))
    if not found:
        pytest.skip("the Python package is not installed here")
    with pytest.raises(sources.Failed, match="expected to need glibc alone"):
        checks.check_extension(found[0].read_bytes(), TARGETS["linux-x86_64"])


@pytest.fixture
def packed(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    licence = tmp_path / "licence"
    licence.mkdir()
    for name in ("LICENSE", "LICENSE.txt"):
        (licence / name).write_text("as is")
    monkeypatch.setattr(sources, "unpack", lambda source, build: licence)
    abi, target = targets.ABIS[0], TARGETS["macos-arm64"]
    return lambda where: package.pack(ROOT, tmp_path / where, target, abi, b"an extension")


def test_equal_files_give_equal_bytes(packed):
    first, second = packed("a"), packed("b")
    assert first.name == "motley-0.1.0-cp312-abi3-macosx_11_0_arm64.whl"
    assert first.read_bytes() == second.read_bytes()


def test_a_wheel_lists_what_is_in_it(packed):
    with zipfile.ZipFile(packed("a")) as wheel:
        information = "motley-0.1.0.dist-info"
        rows = list(csv.reader(wheel.read(f"{information}/RECORD").decode().splitlines()))
        assert sorted(name for name, _, _ in rows) == sorted(wheel.namelist())
        for name, digest, size in rows[:-1]:
            content = wheel.read(name)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert int(size) == len(content)
        assert rows[-1] == [f"{information}/RECORD", "", ""]
        assert {"motley/__init__.py", "motley/ray/__init__.py", "motley/_core.abi3.so", "motley/py.typed"} <= set(wheel.namelist())
        assert "motley = motley._command:main" in wheel.read(f"{information}/entry_points.txt").decode()
        assert "Tag: cp312-abi3-macosx_11_0_arm64" in wheel.read(f"{information}/WHEEL").decode()
        names = {part["name"] for part in json.loads(wheel.read(f"{information}/sboms/motley.cdx.json"))["components"]}
        assert {"openssl", "asio", "protozero", "CLI11", "tomlplusplus", "nlohmann_json", "nanobind", "ziglang"} <= names


def test_an_archive_with_another_hash_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "mirrors", lambda: [f"file://{tmp_path}"])
    source = sources.Source("toy", "1", "0" * 64, "main/toy_1.tar.gz", "", "toy-1")
    (tmp_path / "pool/main").mkdir(parents=True)
    (tmp_path / "pool/main/toy_1.tar.gz").write_bytes(b"something else")
    with pytest.raises(sources.Failed, match=hashlib.sha256(b"something else").hexdigest()):
        sources.fetch(source, tmp_path / "downloads")
    assert not list((tmp_path / "downloads").iterdir())


def test_an_archive_with_the_right_hash_is(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "mirrors", lambda: [f"file://{tmp_path}/nowhere", f"file://{tmp_path}"])
    source = sources.Source("toy", "1", hashlib.sha256(b"it").hexdigest(), "main/toy_1.tar.gz", "", "toy-1")
    (tmp_path / "pool/main").mkdir(parents=True)
    (tmp_path / "pool/main/toy_1.tar.gz").write_bytes(b"it")
    assert sources.fetch(source, tmp_path / "downloads").read_bytes() == b"it"


def test_each_target_has_its_turn():
    turns = [targets.in_turn(f"{number:08x}") for number in range(0x1000, 0x1010)]
    assert all(own == "linux-x86_64" != other for own, other in turns)
    assert {name for turn in turns for name in turn} == set(TARGETS)
    assert targets.in_turn("") == targets.in_turn("00000000")  # where there is no commit


def test_headers_that_no_archive_has_are_those_of_a_python_here(monkeypatch, tmp_path):
    def refused(source, build):
        raise sources.Failed(f"{source.name} {source.version}: nobody has it")

    monkeypatch.setattr(sources, "unpack", refused)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sources.python_headers("cp310", tmp_path) is None
    with pytest.raises(sources.Failed):
        sources.python_headers("cp311", tmp_path)
    (tmp_path / "Python.h").touch()
    (tmp_path / "python3.10").write_text(f"#!/bin/sh\necho {tmp_path}\n")
    (tmp_path / "python3.10").chmod(0o755)
    assert sources.python_headers("cp310", tmp_path) == tmp_path
