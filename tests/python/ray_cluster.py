"""Ray clusters for the tests: several nodes on this machine, and processes found and awaited by what they are."""

import os
import pathlib
import select

from ray.cluster_utils import Cluster

from program import PATIENCE_S


class LocalCluster:
    """Real raylets on one machine, all of them with this many processors; gone at the end of the with block."""

    def __init__(self, *names, cpus=1):
        self._cluster, self._cpus, self.nodes = Cluster(), cpus, {}
        for name in names:
            self.add(name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._cluster.shutdown()

    @property
    def address(self):
        return self._cluster.address

    def add(self, name, **resources):
        settings = {"num_cpus": self._cpus, "node_name": name, "resources": resources}
        self.nodes[name] = self._cluster.add_node(**settings, **({} if self.nodes else {"include_dashboard": False}))

    def raylet(self, name):
        return self.nodes[name].all_processes["raylet"][0].process.pid

    def logs(self):
        """What Ray has written of all its processes, by file."""
        folder = pathlib.Path(next(iter(self.nodes.values())).get_logs_dir_path())
        return {file: file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file()}


def command_lines():
    """The words of all processes of this machine, by number."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            except OSError:
                pass  # it ended meanwhile
    return found


def having(*words):
    """Processes whose words have all of these in this order, one after the other."""
    wanted = list(words)
    return [pid for pid, line in command_lines().items()
            if any(line[i:i + len(wanted)] == wanted for i in range(len(line) - len(wanted) + 1))]


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def await_end(pids):
    """Waits until these processes are gone; zombies are."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            assert poll.poll(PATIENCE_S * 1000), f"process {pid} does not end: {command_lines().get(pid)}"
        finally:
            os.close(handle)
