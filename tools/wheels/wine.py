"""A Python for Windows under Wine, and the program that runs a wheel's `motley` in it.

Its libraries are python.org's, out of a package that brings them for programs which have a Python inside; what is written in Python is
that of CPython's sources. The two programs that are missing are made here: python.exe, and python3.dll, which passes the names of the
stable ABI on.
"""

import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import native
import sources

LIBRARIES = pathlib.Path(__file__).with_name("windows-python.txt")
VERSION = "3.13"
LIBRARY = "python313"
# Wine has the first, and lacks what the second asks it for; the others nobody needs.
WITHOUT = ("api-ms-", "_wmi", "tcl", "tk", "_tkinter")
MAIN = """\
#include <wchar.h>
__declspec(dllimport) int Py_Main(int count, wchar_t **words);
int wmain(int count, wchar_t **words) { return Py_Main(count, words); }
"""
# Pythons that are made to be unpacked beside a program look at no variable of the environment.
MODULE = "import runpy, sys; sys.path.insert(0, {site!r}); sys.argv[0] = 'motley'; runpy.run_module('motley', run_name='__main__')"


def lay_libraries(python):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
                        "--only-binary=:all:", "--platform", "win_amd64", "--python-version", VERSION, "--implementation", "cp",
                        "-d", folder, "-r", LIBRARIES], check=True)
        with zipfile.ZipFile(next(pathlib.Path(folder).iterdir())) as wheel:
            for name in wheel.namelist():
                library = name.rpartition("/")[2]
                if not name.startswith("deploy_libs/") or ".cp" in library or library.startswith(WITHOUT):
                    continue
                beside = library.lower().startswith(("python", "vcruntime"))
                (python if beside else python / "DLLs").joinpath(library).write_bytes(wheel.read(name))


def lay_modules(python, build):
    """What is written in Python, but for its tests."""
    archive = sources.fetch(sources.PYTHONS["abi3"], build / "downloads")
    with tarfile.open(archive) as tar:
        wanted = []
        for member in tar:
            _, *parts = pathlib.PurePosixPath(member.name).parts
            if parts[:1] == ["Lib"] and parts[1:2] != ["test"]:
                wanted.append(member.replace(name="/".join(parts), deep=False))
        tar.extractall(python, wanted, filter="data")


def lay_programs(python, build):
    """`build`: a Native for Windows whose dependencies are there."""
    listed = (sources.unpack(sources.PYTHONS["abi3"], build.build) / "PC/python3dll.c").read_text()
    names = [f"{name}={LIBRARY}.{name}" + ",DATA" * (kind == "DATA")
             for kind, name in re.findall(r"^EXPORT_(FUNC|DATA)\((\w+)\)", listed, re.MULTILINE)]
    (build.home / "python3.s").write_text('.section .drectve,"yn"\n' + "".join(f'.ascii " -export:{name}"\n' for name in names))
    (build.home / "python.c").write_text(MAIN)
    log = build.home / "python.log"
    native.run([build.tools / "cc", "-shared", "-o", python / "python3.dll", build.home / "python3.s"], build.home, log, build.environment)
    native.run([build.tools / "cc", "-municode", "-O2", "-s", "-o", python / "python.exe", build.home / "python.c",
                "-L", build.stage / "lib", "-lpython3"], build.home, log, build.environment)


def lay_python(build):
    python = build.home / "python"
    stamp = python / ".laid"
    wanted = LIBRARIES.read_text() + " ".join(WITHOUT)
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(python, ignore_errors=True)
        (python / "DLLs").mkdir(parents=True)
        lay_libraries(python)
        lay_modules(python, build.build)
        lay_programs(python, build)
        stamp.write_text(wanted)
    return python / "python.exe"


def install(build, dist):
    """Installs the wheel for that Python; returns the program that runs its `motley`."""
    runner, = build.target.runner
    if shutil.which(runner) is None:
        raise sources.Failed(f"expected {runner}, found none\ntry: apt-get install {build.target.runner_packages}")
    python = lay_python(build)
    wheel, = dist.glob("*-cp312-abi3-win_amd64.whl")
    site = build.home / "site"
    shutil.rmtree(site, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--only-binary=:all:",
                    "--target", site, "--platform", build.target.platform, "--python-version", VERSION, "--implementation", "cp", wheel],
                   check=True)
    program = build.home / "motley"
    words = ["env", f"WINEPREFIX={build.home / 'wine'}", "WINEDEBUG=-all", runner, python, "-c", MODULE.format(site=f"Z:{site}")]
    program.write_text(f"#!/bin/sh\nexec {shlex.join(map(str, words))} \"$@\"\n")
    program.chmod(0o755)
    return program
