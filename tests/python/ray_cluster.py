"""Ray clusters for the tests: several nodes on this machine."""

import pathlib

from ray.cluster_utils import Cluster


# Ray makes its workers nice, and on a machine that is busy with something else they would hardly get on. A node that is gone is noticed
# after five calls that failed; by default there is one every three seconds.
CONFIG = {"worker_niceness": 0, "health_check_period_ms": 500}


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
        first = {} if self.nodes else {"include_dashboard": False, "_system_config": CONFIG}
        self.nodes[name] = self._cluster.add_node(num_cpus=self._cpus, node_name=name, resources=resources, **first)

    def kill(self, name):
        """kill -9 of the node's raylet. It is waited for: as long as it is a zombie, what it started believes it alive."""
        raylet = self.nodes[name].all_processes["raylet"][0].process
        raylet.kill()
        raylet.wait()

    def logs(self):
        """What Ray has written of all its processes, by file."""
        folder = pathlib.Path(next(iter(self.nodes.values())).get_logs_dir_path())
        return {file: file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file()}
