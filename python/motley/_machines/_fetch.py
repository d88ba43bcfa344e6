"""The files of a script on their way to a machine that asked for them, and was asked whether to run them. Of a recipe, which is there
already, the name goes on that way, and nobody is asked."""

import hashlib
import json
import pathlib
import re
import shlex
import sys
from dataclasses import dataclass
from typing import Any

from motley import _core
from motley._errors import Error
from motley._machines import _cache, _packages

FILES_MAX = 1000
BYTES_MAX = 16 << 20
WORDS_MAX, WORD_MAX = 256, 4096  # of a recipe's arguments, and characters of one
VERSION = re.compile(r"[0-9A-Za-z.+!-]{1,32}")
RECIPE = "recipe.json"  # in the directory of a recipe's run, what pack_recipe() makes
INSTALLED = "site-packages"  # of a notebook's kernel, for one, the script is a package's


def pack(script: str, arguments: list[str]) -> bytes:
    """The script, and the modules beside it and below that it has imported so far. Nothing where it is no file of
    text, or there is too much."""
    path = pathlib.Path(script).resolve()
    if path.suffix != ".py" or not path.is_file() or INSTALLED in path.parts:
        return b""
    files = {path.name: path}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        place = pathlib.Path(file).resolve() if isinstance(file, str) and file.endswith(".py") else None
        if place is not None and place.is_relative_to(path.parent) and place.is_file() and INSTALLED not in place.parts:
            files[place.relative_to(path.parent).as_posix()] = place
    if len(files) > FILES_MAX or sum(place.stat().st_size for place in files.values()) > BYTES_MAX:
        return b""
    try:
        texts = {name: place.read_text(encoding="utf-8") for name, place in sorted(files.items())}
    except (OSError, UnicodeDecodeError):
        return b""
    content = {"script": path.name, "arguments": arguments, "files": texts, "packages": _packages.imported(texts)}
    return json.dumps(content, ensure_ascii=False).encode()


def pack_recipe(name: str, arguments: list[str]) -> bytes:
    """A recipe of this package, with the version that has to be there."""
    return json.dumps({"recipe": name, "arguments": arguments, "version": _core.version}, ensure_ascii=False).encode()


def recipe(packed: bytes) -> tuple[str, list[str], str] | None:
    """Its name, its arguments, and the version of motley; None: it is a script. Errors: this package has no such recipe."""
    content = _content(packed)
    if "recipe" not in content:
        return None
    name, arguments, version = (content.get(key) for key in ("recipe", "arguments", "version"))
    wrong = Error("what the head sent is no recipe", "install the same version of motley on both machines", "protocol")
    if not isinstance(version, str) or VERSION.fullmatch(version) is None:
        raise wrong
    if not isinstance(arguments, list) or len(arguments) > WORDS_MAX or not isinstance(name, str):
        raise wrong
    if not all(isinstance(word, str) and len(word) <= WORD_MAX for word in arguments):
        raise wrong
    if name not in _core.recipes and version == _core.version:
        raise wrong
    return name, arguments, version


def recipe_of(run: str) -> tuple[str, list[str]]:
    """That of a run's directory. Errors: the run is one of a script."""
    try:
        found = recipe(pathlib.Path(run, RECIPE).read_bytes())
    except OSError:
        found = None
    if found is None:
        raise Error(f"{run} is the run of a script", f"motley train --resume --run {shlex.quote(run)} SCRIPT.py", "usage")
    return found[:2]


def _content(packed: bytes) -> dict[str, Any]:
    try:
        content = json.loads(packed.partition(b"\0")[0])  # what earlier runs of the script left may follow
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise Error("what the head sent is no script", "join with the script: motley join TOKEN SCRIPT.py", "protocol")
    return content


@dataclass
class Fetched:
    """script: its name.  files: by name.  packages: versions of what the files import, by pip's names."""

    script: str
    arguments: list[str]
    files: dict[str, bytes]
    packages: dict[str, str]


def unpack(packed: bytes) -> Fetched:
    """Errors: anything but a few Python files below one directory."""
    content = _content(packed)
    try:
        script, arguments, files = content["script"], content["arguments"], content["files"]
        whole, packages = {name: text.encode() for name, text in files.items()}, _packages.checked(content["packages"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Error("what the head sent is no script", "join with the script: motley join TOKEN SCRIPT.py", "protocol") from None
    right = isinstance(arguments, list) and all(isinstance(word, str) for word in arguments) and script in whole and len(whole) <= FILES_MAX
    if not right or not all(_is_below(name) for name in whole):
        raise Error("the head sent files with invalid names", "join with the script: motley join TOKEN SCRIPT.py", "protocol")
    return Fetched(script, arguments, whole, packages)


def _is_below(name: str) -> bool:
    parts = name.split("/")
    return name.endswith(".py") and name.isprintable() and not any(part in ("", ".", "..") or {"\\", ":"} & set(part) for part in parts)


def shown(words: list[str]) -> str:
    """As a shell would take them; what moves a terminal's cursor or turns its text around is spelled out."""
    return shlex.join("".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in word)
                      for word in words)


def receive(packed: bytes, agreed: bool, installs: bool) -> tuple[str, list[str], list[str]]:
    """Says what came, asks unless that is `agreed`, and writes it down: (path of the script, its arguments, what an environment of its own
    is to have). Of a recipe, its name instead of a path, and nobody is asked. Errors: packages are missing, and nobody `installs` them."""
    named = recipe(packed)
    if named is not None:
        name, arguments, version = named
        if version != _core.version:
            raise Error(f"the head trains a recipe of motley {version}, and this is motley {_core.version}",
                        f"pip install motley=={version}", "mismatch")
        print(f"The head trains {shown([name, *arguments])}, a recipe of this motley", file=sys.stderr, flush=True)
        return name, arguments, []
    came = unpack(packed)
    digest = hashlib.sha256(packed.partition(b"\0")[0]).hexdigest()[:16]
    lines = [f"  {hashlib.sha256(text).hexdigest()}  {len(text):>8} bytes  {name}" for name, text in sorted(came.files.items())]
    print("The head's script, by SHA-256:", *lines, f"It would run as: {shown([came.script, *came.arguments])}", sep="\n", file=sys.stderr)
    differs = _packages.compare(came.packages)
    wanted = differs.wanted if installs else []
    for line in differs.lines():
        print(f"Note: {line}", file=sys.stderr)
    if differs.missing and not installs:
        raise Error(f"the script needs what this machine lacks: {', '.join(differs.missing)}",
                    f"{_packages.install_line(differs.missing)}; or motley join TOKEN --fetch --install, which leaves this Python as it is")
    if wanted:
        print(f"It would be run in an environment of its own, with {' '.join(wanted)} from the package index of pip", file=sys.stderr)
    if not agreed and not _asked():
        raise Error(f"this run is one of a Python script, {came.script}, and nobody agreed to run it here",
                    "motley join TOKEN --fetch --yes runs it without asking; motley join TOKEN SCRIPT.py runs one of your own", "usage")
    place = _cache.directory() / "scripts" / digest
    for name, text in came.files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return str(place / came.script), came.arguments, wanted


def environment(wanted: list[str]) -> pathlib.Path:
    """Where one with these packages is, or will be; for this Python alone."""
    what = "\n".join([sys.version, sys.prefix, *sorted(wanted)])
    return _cache.directory() / "environments" / hashlib.sha256(what.encode()).hexdigest()[:16]


def _asked() -> bool:
    if not sys.stdin.isatty():
        return False
    print("Run it on this machine? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
