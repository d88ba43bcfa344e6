"""A Slurm cluster for the tests: one node, this machine. Needs root, and Slurm and MUNGE from the system's packages."""

import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import tempfile

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
CONFIG = """
ClusterName=motley
SlurmctldHost={host}(127.0.0.1)
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}
SlurmdSpoolDir={folder}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
"""


def why_no_slurm():
    """Why there can be none; empty where there can."""
    if os.geteuid() != 0:
        return "it needs root"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"{', '.join(missing)} not installed: apt install slurmctld slurmd slurm-client munge" if missing else ""


class SlurmCluster:
    """Use as a context; `conf` is for SLURM_CONF."""

    def __enter__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # MUNGE trusts no folder that others can write to
        self._folder.chmod(0o755)
        self._daemons = []
        self.conf = self._folder / "slurm.conf"
        self.conf.write_text(CONFIG.format(host=socket.gethostname().partition(".")[0], folder=self._folder, ports=_free_ports(2)))
        (self._folder / "munge.key").touch(0o600)
        (self._folder / "munge.key").write_bytes(secrets.token_bytes(128))
        try:
            files = [f"--{each}-file={self._folder}/munge.{each}" for each in ("key", "pid", "log", "seed")]
            self._start("Created", "munged", "--foreground", "--force", f"--socket={self._folder}/munge.socket", *files)
            self._start("Running as primary controller", "slurmctld", "-D", "-i", "-f", self.conf)
            self._start("slurmd started", "slurmd", "-D", "-f", self.conf)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self._daemons):
            daemon.terminate()
            daemon.wait()
            daemon.stderr.close()
        shutil.rmtree(self._folder)

    def _start(self, ready, *words):
        daemon = subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self._daemons.append(daemon)
        said = []
        for line in daemon.stderr:
            said.append(line)
            if ready in line:
                return
        raise RuntimeError(f"{words[0]} ended: {''.join(said[-5:])}")


def _free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
