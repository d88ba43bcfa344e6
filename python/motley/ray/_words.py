"""The words behind `motley train --on ray`: which are Ray's, which `motley train`'s, which the script's."""

import argparse
import contextlib
import io
import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from motley import _core
from motley._errors import Error

PLACED_BY_RAY = {"device": "each node's resources say which devices there are: ray start --num-gpus, --num-cpus, --resources",
                 "name": "workers are called as their nodes: ray start --node-name",
                 "token_file": "DIR/token of --run DIR has the token, for machines outside the cluster",
                 "dry_run": "motley plan TARGET, and motley join on the nodes"}
WITHOUT_VALUE = ("--resume", "--plaintext", "--keys", "--pair", "--verbose", "--new-token", "--no-keep-awake")


@dataclass
class Wanted:
    """A run on a Ray cluster."""

    target: str
    rest: list[str]  # for `motley train`: the target, --set, …
    script_arguments: list[str] = field(default_factory=list)
    address: str = "auto"
    run: str = ""
    threads: int = 0
    json: bool = False

    @property
    def is_script(self) -> bool:
        return self.target.endswith(".py")


def read(words: Sequence[str]) -> Wanted:
    """`words`: behind `motley`. Errors: what has no place on a Ray cluster."""
    split = words.index("--") if "--" in words else len(words)
    ours, behind = list(words[:split]), list(words[split:])
    parser = argparse.ArgumentParser(prog="motley train --on ray", add_help=False, allow_abbrev=False)
    for flag in ("--on", "--run", "--device", "--name", "--token-file"):
        parser.add_argument(flag)
    parser.add_argument("--address", default="auto")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--dry-run", action="store_true", default=None)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            known, rest = parser.parse_known_args(ours)
    except SystemExit:
        raise Error(said.getvalue().strip().splitlines()[-1], "motley train --on ray TARGET", "usage") from None
    if known.on != "ray":
        raise Error(f"--on: expected ray, found {known.on!r}", "motley train --on ray TARGET", "usage")
    for name, instead in PLACED_BY_RAY.items():
        if getattr(known, name) is not None:
            raise Error(f"--{name.replace('_', '-')} has no place on a Ray cluster", instead, "usage")
    rest.remove("train")
    script = next((word for word in rest if word.endswith(".py")), None)
    if script is not None:
        _, arguments = _split_script(["train", *rest, *behind])
        return Wanted(script, rest + behind, arguments, known.address, known.run or _free_run(script), known.threads, known.json)
    target = _target(rest)
    if not target and "--resume" not in rest:
        raise Error("train what? expected a recipe, softmax or a script", "motley train --on ray softmax", "usage")
    return Wanted(target, rest + behind, [], known.address, known.run or _free_run(target), known.threads, known.json)


def _target(rest: list[str]) -> str:
    """The first word that is neither a flag nor the value of one."""
    values = {i + 1 for i, word in enumerate(rest) if word.startswith("--") and "=" not in word and word not in WITHOUT_VALUE}
    return next((word for i, word in enumerate(rest) if not word.startswith("--") and i not in values), "")


def _split_script(words: list[str]) -> tuple[str, list[str]]:
    """The script, and the words that are its own: the command itself says which."""
    found: list[_core.Launch] = []

    def take(launch: _core.Launch) -> int:
        found.append(launch)
        return 0

    if _core.run_command(["motley", *words], take, lambda: None) != 0 or not found:
        raise SystemExit(2)  # the command said why
    return found[0].script, list(found[0].arguments)


def _free_run(target: str) -> str:
    name = pathlib.Path(target).stem or "run"
    number = 1
    while os.path.exists(f"runs/{name}-{number}"):
        number += 1
    return f"runs/{name}-{number}"
