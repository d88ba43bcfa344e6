"""A run on the head, from its start to its end, whatever computes its gradients."""

import _thread
import atexit
import json
import math
import os
import pathlib
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from motley import _core, _launch
from motley._errors import Error
from motley._machines import _again, _fetch
from motley._machines._siblings import Siblings
from motley._runs import _terminal

DESCRIPTION = "script.json"  # in the run's directory: what only the script knows of its optimizer


def epochs(launch: _core.Launch, script: _core.Script, config: str, *, tested: bool, notes: list[str],
           description: dict[str, Any], on_step: Callable[[_core.Event], None] | None = None, steps: bool = False, pauses: str = "never",
           files: bytes = b"", on_begin: Callable[[_core.Head], None] | None = None,
           ) -> Iterator[tuple[_core.Head, _core.Event, _core.Event | None]]:
    """Trains; yields each epoch when it is over, with its evaluation where the run is `tested`. `config`: the run file's text. `on_step`:
    called after each step, in the thread that asks for epochs, where `steps` are wanted. `pauses`: "never", or the run waits for go_on() of
    the head at the "eval_points" that are yielded; "steps": after every step as well. `files`: what machines get that
    ask for the script. on_begin: called when the run's directory is there, before its first step.

    Closing the generator ends the run, with a checkpoint. Ctrl-C stops it, too, and goes on as KeyboardInterrupt.
    """
    siblings = Siblings(launch, script)
    script.set_files(files)
    if launch.role == "plan":
        measured(_core.plan, launch, script, config, siblings)
        raise SystemExit(0)
    live = _terminal.is_live(launch)
    head = _core.Head(launch, script, config, steps, pauses, live)
    output = _terminal.Output()
    for note in notes:
        head.note(note)
    _close_at_exit(head, siblings, output)
    try:
        if live:
            output.take(head)
        head.open()
        _launch.began(head.directory)
        if on_begin is not None:
            on_begin(head)
        head.start()
        if _launch.number() > 1:
            head.note(f"run {_launch.number()} of the script, in {head.directory}")
        siblings.start(head.token, head.note)
        if launch.recipe:
            pathlib.Path(head.directory, _fetch.RECIPE).write_bytes(_fetch.pack_recipe(launch.recipe, launch.arguments))
        pathlib.Path(head.directory, DESCRIPTION).write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
        ended: dict[int, _core.Event] = {}  # by version, until they are evaluated
        while (event := _next(head)) is not None:
            if event.kind == "step":
                assert on_step is not None
                on_step(event)
                if event.paused:
                    head.go_on(None, None)
            elif event.kind == "epoch" and tested:
                ended[event.version] = event
            elif event.kind == "epoch":
                yield head, event, None
            elif (epoch := ended.pop(event.version, None)) is not None:
                yield head, epoch, event
    finally:
        _finish(head, siblings, output)


def state_of(epoch: _core.Event, tested: _core.Event | None) -> _core.State:
    """The model's at an eval point, with the optimizer's: of the event at which the run waits."""
    state = (tested or epoch).state
    assert state is not None
    return state


def config_text(sections: dict[str, dict[str, Any]]) -> str:
    """The text of a run file. Errors: a word that is no text."""
    text = "\n".join(f"[{section}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())
                     for section, values in sections.items())
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise Error(f"the script's arguments are not UTF-8: {sections['model']['arguments']}", "rename what they name")
    return text


def _toml(value: Any) -> str:
    """As JSON, but for numbers that are none there and what JSON leaves as it is in a text, or cuts in two."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def work(launch: _core.Launch, script: _core.Script, patience_s: float = 0) -> int | None:
    """Works for a run elsewhere until it is over: the answer of _core.serve(). Another process goes on in the place of one whose memory
    grew. Errors: this process's device cannot, and the others have ended."""
    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def once() -> int | None:
        with Siblings(launch, script) as siblings:
            siblings.start(launch.token, say)
            try:
                return _core.serve(launch, script, patience_s)
            except Error as error:
                if siblings.others and error.code != _again.GROWN:
                    say(str(error))
                    siblings.wait()
                raise

    try:
        while (at := once()) == 0:  # the token's file has another
            pass
    except Error as error:
        if error.code == _again.GROWN:
            _again.start_again(launch, error)
        raise
    return at


def serve(launch: _core.Launch, script: _core.Script) -> None:
    """Works for a run elsewhere, then leaves the process: what follows in the script is the head's."""
    try:
        work(launch, script)
    except Error as error:
        raise SystemExit(_launch.report(error)) from None
    raise SystemExit(0)


def measured(measure: Callable[..., Any], launch: _core.Launch, script: _core.Script, config: str, siblings: Siblings) -> Any:
    """What _core.plan() or _core.auto_mode() comes to. Errors: a device of this machine cannot be measured."""
    lost: list[str] = []

    def on_lost(text: str) -> None:
        lost.append(text)
        _thread.interrupt_main()  # which waits for all of them

    try:
        with siblings:
            return measure(launch, script, config, siblings.workers, lambda token: siblings.start(token, on_lost))
    except Error:
        if not lost:
            raise
        raise Error(lost[0], "leave it out: --device for each of the others") from None


def _next(head: _core.Head) -> _core.Event | None:
    """What happened next. Ctrl-C lets the run finish its step and write a checkpoint; once more ends the process at once."""
    try:
        return head.next()
    except KeyboardInterrupt as interrupt:
        head.note("finishing the open step; Ctrl-C again ends at once")
        head.stop(False)
        try:
            while head.next() is not None:
                pass
        except Error as error:
            _launch.stopped(error)
        except KeyboardInterrupt:
            os._exit(_core.exit_status("interrupted"))
        raise interrupt


def _finish(head: _core.Head, siblings: Siblings, output: _terminal.Output) -> None:
    """Stops the run where it still goes on, which leaves a checkpoint. The workers need not wait for it to come back."""
    left = ""
    head.stop(True)
    try:
        while head.next() is not None:
            pass
    except Error as error:
        _launch.stopped(error)
        left = _launch.goes_on_by()
    _launch.ended()
    siblings.close()
    head.close()
    output.end()
    if left:
        print(f"the script left the run before its end; it goes on with: {left}", file=sys.stderr, flush=True)


def _close_at_exit(head: _core.Head, siblings: Siblings, output: _terminal.Output) -> None:
    """A body that raised may leave its generator, and with it the run, alive until the interpreter ends."""
    kept = weakref.ref(head)

    def close() -> None:
        running = kept()
        if running is not None:
            _finish(running, siblings, output)

    atexit.register(close)
