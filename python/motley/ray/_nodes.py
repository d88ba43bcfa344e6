"""Which workers a node of a Ray cluster gets, and what each of them reserves."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """A device of a node: what its actor reserves, and what the worker is told."""

    node: str
    device: str  # "gpu:0", …: the number among those that its actor sees; or "cpu"
    cpus: int
    gpus: int
    own: tuple[str, ...]

    @property
    def options(self) -> dict[str, Any]:
        """Ray's options of an actor in this place."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, "resources": {name: 1 for name in self.own}}


def places(node: dict[str, Any], threads: int = 0) -> list[Place]:
    """One place for each accelerator; one for the processor where there is none, or where the node is a `cpu_node`.

    `node`: an entry of ray.nodes(). `threads`: of a CPU worker; 0: all processors that Ray counts there.
    """
    has = {name: int(amount) for name, amount in node["Resources"].items()}
    cpus, gpus = has.get("CPU", 0), has.get("GPU", 0)
    kind = next((name for name in ("cuda", "mps") if has.get(name)), None)
    accelerators = has[kind] if kind else gpus
    found = []
    for number in range(accelerators):
        reserved = gpus >= accelerators  # then Ray shows each actor its own
        found.append(Place(node["NodeID"], f"gpu:{0 if reserved else number}", min(1, cpus // accelerators), int(reserved),
                           (kind,) if kind else ()))
    left = cpus - sum(place.cpus for place in found)
    if has.get("cpu_node") or not found and cpus:
        found.append(Place(node["NodeID"], "cpu", min(threads or left, left), 0, ("cpu_node",) if has.get("cpu_node") else ()))
    return found


def together(found: list[Place]) -> dict[str, Any]:
    """Ray's options of one actor in all of these places."""
    own = [name for place in found for name in place.own]
    return {"num_cpus": sum(place.cpus for place in found), "num_gpus": sum(place.gpus for place in found),
            "resources": {name: own.count(name) for name in own}}


def devices_of(found: list[Place]) -> list[str]:
    """What one process in all of these places is told: it sees the accelerators of all."""
    gpus = sum(place.device != "cpu" for place in found)
    return [f"gpu:{number}" for number in range(gpus)] + ["cpu" for place in found if place.device == "cpu"]


def names(nodes: list[dict[str, Any]]) -> dict[str, str]:
    """A name for each node, by number: Ray's, with some of the number where Ray's is not unique or not there."""
    given = [node.get("NodeName") or node["NodeManagerHostname"] for node in nodes]
    return {node["NodeID"]: name if given.count(name) == 1 else f"{name}-{node['NodeID'][:4]}" for node, name in zip(nodes, given)}
