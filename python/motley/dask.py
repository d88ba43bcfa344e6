"""Runs on a Dask cluster: each of its workers trains; gradients travel on Motley's own connections.

    motley.dask.launch(client, "train.py", ["--lr", "0.1"])

Needs `pip install distributed`.
"""

import json
import os
import pathlib
import secrets
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from motley._machines._processes import Orders, Supervised, command, directory, end, failure, resuming

__all__ = ["launch"]

LOOKS_EVERY_S = 0.5
LAST_WORDS_S = 10.0  # for the workers to hear that the run is over


class Worker:
    """A Dask actor: one worker of the run beside one of Dask's. The process ends with the actor, so with whoever holds it."""

    def __init__(self, orders: Orders, name: str):
        words = ["join", "--json", "--name", name, "--nice", "0"]
        self._process = Supervised(lambda _restarted: command([*words, "-", *orders.words]), directory(orders.directory),
                                   said=orders.token + "\n")
        weakref.finalize(self, self._process.kill)

    def report(self) -> dict[str, Any]:
        ended = self._process.wait(0)
        said = [line for stream, line in self._process.take_lines() if stream == "err"]
        return {"ended": ended, "status": self._process.status, "restarts": self._process.restarts, "error": self._process.error,
                "last": said[-1:]}


def launch(client: Any, target: str, arguments: Sequence[str] = (), *, options: Sequence[str] = (), join_options: Sequence[str] = (),
           run: str = "", on_event: Callable[[dict[str, Any]], None] | None = None) -> str:
    """Trains on all workers of a Dask cluster, as they come and go; returns the run's directory. The coordinator is a process on this
    machine, which does not compute unless `options` has a --device.

    client: a distributed.Client.  target: a recipe, softmax or a script, which is where it is here on every machine.  arguments: of
    the target.  options: words of `motley train`, as ["--resume"].  join_options: of `motley join`, as ["--device", "cpu"]; by default a
    worker takes the accelerators that it sees, or as many threads as Dask gave it.  run: the run's directory.  on_event: called with
    each event of `motley train --json`.

    Errors: motley.Error, as the command would say.
    """
    run = os.path.abspath(run or os.path.join("runs", f"{pathlib.Path(target).stem}-{secrets.token_hex(3)}"))
    words = ["train", "--json", "--run", run, "--token-file", os.path.join(run, "token"), *options]
    words += [] if "--device" in options else ["--device", "none"]
    words += [target, *(["--", *arguments] if arguments else [])]
    head = Supervised(lambda restarted: command(resuming(words, run, restarted)), None, own_group=True)
    members = Members(client, [*join_options, *([target, *arguments] if target.endswith(".py") else [])])
    try:
        while not head.wait(LOOKS_EVERY_S):
            _tell(head, members, run, on_event)
        _tell(head, members, run, on_event)
        if head.status == 0:
            members.hear_out()
    finally:
        end([head])
        members.dismiss()
    if head.status != 0:
        raise failure(head.error, head.status or 0, "the coordinator")
    return run


def _tell(head: Supervised, members: "Members", run: str, on_event: Callable[[dict[str, Any]], None] | None) -> None:
    for stream, line in head.take_lines():
        if stream == "err":
            print(line, file=sys.stderr, flush=True)
            continue
        event = json.loads(line)
        if event["event"] == "run":
            members.token = pathlib.Path(run, "token").read_text(encoding="utf-8").strip()
        if on_event is not None:
            on_event(event)
    if members.token:
        members.look()


class Members:
    """The actors on the workers of a cluster."""

    def __init__(self, client: Any, words: list[str]):
        self._client, self._words = client, words
        self._futures: dict[str, Any] = {}  # by the address of the Dask worker
        self._ended: set[str] = set()
        self._restarts: dict[str, int] = {}
        self.token = ""

    def look(self) -> None:
        """An actor for each Dask worker that has none; those of workers that left are forgotten."""
        there = self._client.scheduler_info(n_workers=-1)["workers"]
        for address in list(self._futures):
            if address not in there:
                self._futures.pop(address).cancel()
        for address, about in there.items():
            if address not in self._futures:
                orders = Orders([*self._threads(about), *self._words], os.getcwd(), self.token)
                self._futures[address] = self._client.submit(Worker, orders, _name(address, about), actor=True, pure=False,
                                                             workers=[address], allow_other_workers=False)
        for address in list(self._futures):
            self._ask(address)

    def _threads(self, about: dict[str, Any]) -> list[str]:
        return [] if "--threads" in self._words else ["--threads", str(about["nthreads"])]

    def _ask(self, address: str) -> None:
        future = self._futures[address]
        if address in self._ended or not future.done():
            return
        try:
            report = future.result().report().result()
        except Exception as error:  # of any kind: Dask passes on what happened there, and a worker that is gone has several
            if future.status == "error":
                self._ended.add(address)
                print(f"dask: {address}: there is no worker: {error}", file=sys.stderr, flush=True)
            return
        if report["restarts"] > self._restarts.get(address, 0):
            self._restarts[address] = report["restarts"]
            print(f"dask: {address}: its worker was started again", file=sys.stderr, flush=True)
        if report["ended"]:
            self._ended.add(address)
            if report["status"] != 0:
                why = (report["error"] or {}).get("message") or (report["last"] or ["it said nothing"])[-1]
                print(f"dask: {address}: its worker ended with status {report['status']}: {why}", file=sys.stderr, flush=True)

    def hear_out(self) -> None:
        """The workers leave by themselves when the run is over."""
        until = time.monotonic() + LAST_WORDS_S
        while set(self._futures) - self._ended and time.monotonic() < until:
            for address in list(self._futures):
                self._ask(address)
            time.sleep(LOOKS_EVERY_S / 5)

    def dismiss(self) -> None:
        for future in self._futures.values():
            future.cancel()
        self._futures.clear()


def _name(address: str, about: dict[str, Any]) -> str:
    """A word for people; Dask's own names are numbers or addresses."""
    return f"{about['host']}-{about['name']}" if str(about["name"]).isdigit() else address.rpartition("/")[2].replace(":", "-")
