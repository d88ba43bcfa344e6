"""A run on a Ray cluster, seen from the driver: actors are made where there are devices, asked how they are, and taken away."""

import contextlib
import os
import secrets
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from motley._errors import Error
from motley._machines._processes import Orders, failure
from motley.ray import _actors, _nodes
from motley.ray._words import Wanted

NAMESPACE = "motley"
NOT_ON_LINUX = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
ANSWERS_IN_S = 10.0
NODES_EVERY_S = 1.0
SCHEDULED_SOON_S = 10.0  # who waits longer for resources is named
LAST_WORDS_S = 10.0  # for the workers to hear that the run is over


class CoordinatorFailed(Error):
    """What the coordinator has said already."""


def connect(address: str) -> bool:
    """Joins the cluster as a driver; returns whether this call did. Errors: there is none."""
    if ray.is_initialized():
        return False
    check_platform(sys.platform, os.environ)
    try:
        host, _, port = address.rpartition(":")
        if port.isdigit() and "/" not in host:  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), ANSWERS_IN_S).close()
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="WARNING")
    except (OSError, RuntimeError, ValueError, RayError) as error:
        raise Error(f"--address {address}: no Ray cluster answers ({str(error).splitlines()[0] if str(error) else type(error).__name__})",
                    "ray start --head on one machine, ray start --address=… on the others; or --address local", "io") from None
    return True


def check_platform(platform: str, environment: Any) -> None:
    """Errors: on this system Ray keeps to one machine unless it is told otherwise."""
    if platform in ("darwin", "win32") and environment.get(NOT_ON_LINUX, "").lower() not in ("1", "true"):
        system = "macOS" if platform == "darwin" else "Windows"
        raise Error(f"Ray clusters with {system} need {NOT_ON_LINUX}=1, and this process has it not: its actors could not be reached",
                    f"export {NOT_ON_LINUX}=1 here, and on each such node before ray start", "usage")


@dataclass
class Member:
    """A worker's actor as the driver knows it."""

    name: str
    place: _nodes.Place
    actor: Any
    asked: Any = None  # the report that was asked for
    since: float = field(default_factory=time.monotonic)
    supervisor: int = 0  # the process of the actor; 0: it never answered
    restarts: int = 0
    ended: bool = False
    named: bool = False


class Job:
    """One run on the cluster that this process is connected to. For one thread.

    on_line(stream, line): what the coordinator says, "out" for events and "err" for people.
    """

    def __init__(self, wanted: Wanted, on_line: Callable[[str, str], None]):
        self._wanted, self._on_line = wanted, on_line
        self._run = os.path.abspath(wanted.run)
        self._id = f"{os.path.basename(self._run)}-{secrets.token_hex(2)}"
        self._members: dict[tuple[str, int], Member] = {}  # by node and place there
        self._token = ""
        self._supervisor = 0
        self._restarts = 0
        self._interrupts = 0
        self._home = ray.get_runtime_context().get_node_id()

    def run(self) -> str:
        """Trains to the end; returns the run's directory. Ctrl-C stops the run with a checkpoint. Errors: as `motley train`."""
        nodes = self._alive()
        here = _nodes.places(next(node for node in nodes if node["NodeID"] == self._home), self._wanted.threads)
        coordinator = self._make_coordinator(here, _nodes.names(nodes)[self._home])
        try:
            with self._hears_interrupts():
                report = self._follow(coordinator)
            if report["status"] == 0:
                self._say_goodbye()
        finally:
            self._hear_out()
            for actor in [coordinator, *(member.actor for member in self._members.values())]:
                ray.kill(actor)
        if report["status"] != 0:
            error = failure(report["error"], report["status"], "the coordinator")
            raise CoordinatorFailed(error.args[0], error.hint, error.code)
        return self._run

    def _follow(self, coordinator: Any) -> dict[str, Any]:
        """Until the coordinator has ended; returns its last report."""
        asked, interrupts = coordinator.report.remote(), 0
        while True:
            ready, _ = ray.wait([asked], timeout=NODES_EVERY_S)
            if ready:
                report = self._coordinator_report(asked)
                if report["ended"]:
                    return report
                asked = coordinator.report.remote()
                if any(line.startswith('{"event":"run"') for stream, line in report["lines"] if stream == "out"):
                    self._invite_by(ray.get(coordinator.token.remote()))
            if self._token:
                self._place_workers()
                self._ask_workers()
            if self._interrupts > interrupts:
                interrupts = self._interrupts
                coordinator.interrupt.remote()

    @contextlib.contextmanager
    def _hears_interrupts(self) -> Iterator[None]:
        """Ctrl-C is taken note of, since an exception would cut a line in two; the second one ends the driver."""
        def interrupted(_number: int, _frame: Any) -> None:
            self._interrupts += 1
            if self._interrupts > 1:
                raise KeyboardInterrupt

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _coordinator_report(self, asked: Any) -> dict[str, Any]:
        try:
            report: dict[str, Any] = ray.get(asked)
        except RayActorError as error:
            raise Error(f"the coordinator's actor is lost: {_first_line(error)}",
                        f"motley train --on ray --resume --run {shlex.quote(self._run)}", "io") from None
        for stream, line in report["lines"]:
            self._on_line(stream, line)
        if self._supervisor not in (0, report["supervisor"]):
            self._note("Ray started the coordinator's actor again")
        if report["restarts"] > (self._restarts if self._supervisor == report["supervisor"] else 0):
            self._note("the coordinator was started again")
        self._supervisor, self._restarts = report["supervisor"], report["restarts"]
        return report

    def _invite_by(self, token: str) -> None:
        """A coordinator that was started again keeps its token, unless it could not have its port back."""
        if self._token not in ("", token):
            for member in self._members.values():
                ray.kill(member.actor)
            self._members.clear()
        self._token = token

    # --- workers -------------------------------------------------------------------------------------------------------------

    def _alive(self) -> list[dict[str, Any]]:
        return [node for node in ray.nodes() if node["Alive"]]

    def _place_workers(self) -> None:
        """A worker for each device that has none; those of nodes that left are forgotten."""
        nodes = self._alive()
        names, alive = _nodes.names(nodes), {node["NodeID"] for node in nodes}
        for key, member in list(self._members.items()):
            if member.place.node not in alive:
                self._note(f"{member.name}: its node left the cluster")
                ray.kill(self._members.pop(key).actor)
        for node in nodes:
            found = _nodes.places(node, self._wanted.threads) if node["NodeID"] != self._home else []
            for number, place in enumerate(found):
                name = names[place.node] + (f"-{number}" if len(found) > 1 else "")
                if (place.node, number) not in self._members:
                    self._members[place.node, number] = self._make_worker(name, place)

    def _ask_workers(self) -> None:
        for member in self._members.values():
            if member.asked is None and not member.ended:
                member.asked = member.actor.report.remote()
            elif member.asked is not None and ray.wait([member.asked], timeout=0)[0]:
                member.asked = self._take_report(member, member.asked)
            elif member.supervisor == 0 and not member.named and time.monotonic() - member.since > SCHEDULED_SOON_S:
                member.named = True
                self._note(f"{member.name} waits until its node has {member.place.cpus} CPU and {member.place.gpus} GPU to spare")

    def _take_report(self, member: Member, asked: Any) -> None:
        try:
            report = ray.get(asked)
        except RayActorError as error:  # for good: the node is gone, which shows soon, or nothing can be started there
            member.ended = True
            if member.place.node in {node["NodeID"] for node in self._alive()}:
                self._note(f"{member.name}: no worker could be started there: {_first_line(error)}")
            return
        if member.supervisor == 0:
            self._note(f"{member.name}: worker on {member.place.device}")
        elif member.supervisor != report["supervisor"]:
            self._note(f"{member.name}: Ray started its actor again")
        if report["restarts"] > (member.restarts if member.supervisor == report["supervisor"] else 0):
            self._note(f"{member.name}: its worker was started again")
        member.supervisor, member.restarts = report["supervisor"], report["restarts"]
        if report["ended"]:
            member.ended = True
            if report["status"] != 0:
                why = (report["error"] or {}).get("message") or (report["last"] or ["it said nothing"])[-1]
                self._note(f"{member.name}: its worker ended with status {report['status']}: {why}")

    def _say_goodbye(self) -> None:
        until = time.monotonic() + LAST_WORDS_S
        for member in self._members.values():
            while not member.ended and member.supervisor and time.monotonic() < until:
                try:
                    asked = member.asked or member.actor.report.remote()
                    member.asked = None
                    member.ended = ray.get(asked, timeout=max(0.0, until - time.monotonic()))["ended"]
                except (RayActorError, GetTimeoutError):
                    break

    def _hear_out(self) -> None:
        """Ray complains of calls that were under way when an actor was killed."""
        asked = [member.asked for member in self._members.values() if member.asked is not None and member.supervisor]
        if asked:
            ray.wait(asked, num_returns=len(asked), timeout=2 * _actors.REPORT_S)

    # --- actors --------------------------------------------------------------------------------------------------------------

    def _make_coordinator(self, here: list[_nodes.Place], name: str) -> Any:
        threads = sum(place.cpus for place in here if place.device == "cpu")
        words = ["--name", name, *(["--threads", str(threads)] if threads else []), *self._wanted.rest]
        orders = Orders(words, os.getcwd())
        options = self._options("coordinator", self._home, _nodes.together(here))
        return ray.remote(_actors.Coordinator).options(**options).remote(orders, self._run, _nodes.devices_of(here))

    def _make_worker(self, name: str, place: _nodes.Place) -> Member:
        words = [self._wanted.target, *self._wanted.script_arguments] if self._wanted.is_script else []
        orders = Orders(words, os.getcwd(), self._token)
        options = self._options(name, place.node, place.options)
        threads = place.cpus if place.device == "cpu" else 0
        return Member(name, place, ray.remote(_actors.Worker).options(**options).remote(orders, name, place.device, threads))

    def _options(self, name: str, node: str, resources: dict[str, Any]) -> dict[str, Any]:
        return {"name": f"{self._id}/{name}", "namespace": NAMESPACE, "max_restarts": -1, "max_task_retries": -1, **resources,
                "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}

    def _note(self, text: str) -> None:
        self._on_line("err", f"ray: {text}")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error" in line), lines[0] if lines else type(error).__name__)
