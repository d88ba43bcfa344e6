"""What a script imports that does not come with Python: on the head which versions these are, on a machine that joins what it lacks."""

import ast
import importlib.metadata
import os
import pathlib
import re
import site
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from motley import _core
from motley._errors import Error
from motley._machines import _system

NAMES_MAX = 200
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
VERSION = re.compile(r"[0-9][A-Za-z0-9.!_-]{0,63}")  # without the part behind "+", which says what it was built for
OWN = "motley"


def imported(sources: Mapping[str, str]) -> dict[str, str]:
    """Versions of the packages that these files import, by the name that pip knows. `sources`: texts by path below the script's folder."""
    local = {name.split("/")[0].removesuffix(".py") for name in sources}
    roots = set().union(*map(_roots, sources.values())) - local - set(sys.stdlib_module_names) - {OWN}
    found, unknown = dict[str, str](), set[str]()
    for root in roots:
        version = _version(root)
        if version:
            found[root] = version
        else:
            unknown.add(root)
    if unknown:
        by_module = importlib.metadata.packages_distributions()
        names = {name for root in unknown for name in by_module.get(root, ())}
        found |= {name: version for name in names if (version := _version(name))}
    return dict(sorted(found.items())[:NAMES_MAX])


def _roots(source: str) -> set[str]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module]
    return {name.split(".")[0] for name in names}


def _version(name: str) -> str:
    """Empty: it is not installed, or says no version that pip would take."""
    try:
        version = importlib.metadata.version(name).partition("+")[0]
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return ""
    return version if VERSION.fullmatch(version) else ""


def checked(told: object) -> dict[str, str]:
    """What a head said, if that can be. Raises ValueError."""
    if not isinstance(told, dict) or len(told) > NAMES_MAX:
        raise ValueError
    for name, version in told.items():
        if not (isinstance(name, str) and isinstance(version, str) and NAME.fullmatch(name) and VERSION.fullmatch(version)):
            raise ValueError
    return told


@dataclass
class Difference:
    """Requirements as pip takes them. other: (name, version here, version there)."""

    missing: list[str]
    other: list[tuple[str, str, str]]

    @property
    def wanted(self) -> list[str]:
        """What an environment of the script's own gets. A torch that is here stays: it was chosen for this machine's devices."""
        return self.missing + [f"{name}=={there}" for name, _, there in self.other if name != "torch"]

    def lines(self) -> list[str]:
        said = [f"this machine has {name} {here}, the head {there}" for name, here, there in self.other]
        return said + ([f"this machine lacks {', '.join(self.missing)}"] if self.missing else [])


def compare(packages: Mapping[str, str]) -> Difference:
    """With those of this Python."""
    here = {name: _version(name) for name in packages}
    return Difference([f"{name}=={version}" for name, version in packages.items() if not here[name]],
                      [(name, here[name], version) for name, version in packages.items() if here[name] not in ("", version)])


def install_line(requirements: Iterable[str]) -> str:
    return f"{sys.executable} -m pip install {' '.join(requirements)}"


def run_in_own(launch: _core.Launch, place: pathlib.Path, requirements: list[str]) -> NoReturn:
    """Goes on in an environment of its own at `place`, which has these beside all that this Python has."""
    python = _system.executable(str(place))
    if not (place / "complete").is_file():
        print(f"Making {place} with {' '.join(requirements)}", file=sys.stderr, flush=True)
        try:
            import venv  # some systems leave it out of their Python

            venv.EnvBuilder(with_pip=True, clear=True).create(place)
        except (ImportError, subprocess.CalledProcessError, OSError) as error:
            raise Error(f"{place} cannot be made: {error}",
                        f"on Debian and Ubuntu: apt-get install python3-venv; or {install_line(requirements)}", "io") from error
        _see_outer(python)
        asked = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *requirements],
                               stdout=sys.stderr, check=False)
        if asked.returncode != 0:
            raise Error(f"pip could not install {' '.join(requirements)}", install_line(requirements), "input")
        (place / "complete").touch()
    devices = [word for device in launch.devices for word in ("--device", device)]
    _system.become([python, "-m", "motley", "join", "-", os.path.abspath(launch.script), *(["--json"] if launch.json else []),
                    *launch.join_options, *devices, "--", *launch.arguments], launch.token)


def _see_outer(python: str) -> None:
    """What is installed for this Python is there behind what the environment has of its own."""
    outer = [path for path in sys.path if os.path.isdir(path) and os.path.basename(path) in ("site-packages", "dist-packages")]
    places = list(dict.fromkeys([*outer, *site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]))
    lines = [f"import site; site.addsitedir({path!r})\n" for path in places if os.path.isdir(path)]
    asks = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    found = subprocess.run(asks, capture_output=True, text=True, check=True)
    pathlib.Path(found.stdout.strip(), "outer.pth").write_text("".join(lines), encoding="utf-8")
