"""Runs on a Ray cluster: Ray places, supervises and restarts the workers; gradients travel on Motley's own connections.

    motley.ray.train("train.py", ["--lr", "0.1"], address="auto")

is `motley train --on ray train.py --lr 0.1`. Needs `pip install ray`.
"""

import contextlib
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

from motley import _core
from motley._errors import Error

try:
    import ray as _ray  # noqa: F401
except ImportError as _error:
    raise Error(f"motley.ray needs Ray, and this Python has none ({_error})", "pip install ray, on every node the same version",
                "usage") from _error

from motley.ray import _job, _words

__all__ = ["train", "trainable"]


def train(target: str, arguments: Sequence[str] = (), *, address: str = "auto", options: Sequence[str] = (), run: str = "",
          threads: int = 0, mode: str | None = None,
          on_event: Callable[[dict[str, Any]], None] | None = None) -> str:
    """Trains on all nodes of a Ray cluster, as they come and go; returns the run's directory.

    target: a recipe, softmax or a script, which is where it is here on every node.  arguments: of the target.
    address: of the cluster; one that this process is connected to already is used.  options: words of `motley train`, as ["--resume"].
    run: the directory of the run.  threads: of each CPU worker.
    mode: "exact", "rounds" (for slow links) or "auto", as of motley.Run; None: as the script says.
    on_event: called with each event of `motley train --json`.

    Errors: motley.Error, as the command would say.
    """
    behind = ["--", *arguments] if arguments else []
    words = ["train", "--on", "ray", "--address", address, *(["--run", run] if run else []),
             "--threads", str(threads), *(["--set", f"train.mode={mode}"] if mode else []), *options, target, *behind]
    wanted = _words.read(words)

    def on_line(stream: str, line: str) -> None:
        if stream == "err":
            print(line, file=sys.stderr, flush=True)
        elif on_event is not None:
            on_event(json.loads(line))

    return _run(wanted, on_line)


def trainable(target: str, arguments: Sequence[str] = (), *, options: Sequence[str] = ()) -> Callable[[dict[str, Any]], None]:
    """A trial for Ray Tune: a run by itself on the devices that the trial has (`tune.with_resources`).

        tune.Tuner(motley.ray.trainable("train.py"), param_space={"lr": tune.loguniform(1e-3, 1)})

    Of the trial's parameters, those with a point are keys of the run; the others are arguments of the target: `--name value` of a script
    or a recipe, `name=value` of softmax.
    Each evaluation is reported: `loss`, `accuracy` and the script's scores by their names, NaN for what is not finite or not there; a run
    without test data once, at its end, with the training's `loss`. A trial that is tried again goes on with its run. Without a card the
    run has as many threads as the trial has whole processors, and at least one.

    Errors: motley.Error of the run, which fails the trial; a score whose name Tune or an evaluation uses itself.
    """
    from motley.ray import _tune

    return _tune.trainable(target, arguments, options)


def main(words: Sequence[str]) -> int:
    """`motley train --on ray …`, without the `motley`; returns its exit status. Errors: what the coordinator did not say itself."""
    wanted = _words.read(words)
    said = {"out": sys.stdout, "err": sys.stderr} if wanted.json else {"err": sys.stdout}

    def on_line(stream: str, line: str) -> None:
        if stream in said:
            print(line, file=said[stream], flush=True)

    try:
        with contextlib.redirect_stdout(sys.stderr):  # Ray has words of its own for standard output
            _run(wanted, on_line)
    except _job.CoordinatorFailed as error:
        return _core.exit_status(error.code)
    except KeyboardInterrupt:
        words = ["motley", "train", "--on", "ray", "--resume", "--run", wanted.run, wanted.target]
        raise Error("interrupted before the run had stopped", shlex.join(filter(None, words)), "interrupted") from None
    return 0


def _run(wanted: _words.Wanted, on_line: Callable[[str, str], None]) -> str:
    mine = _job.connect(wanted.address)
    try:
        return _job.Job(wanted, on_line).run()
    finally:
        if mine:
            _ray.shutdown()
