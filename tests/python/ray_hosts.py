"""A Ray cluster whose nodes are hosts of the lab (tools/lab), each with processes of its own. Needs root; knows nothing of the tests."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = [sys.executable, str(ROOT / "tools" / "lab")]
PORT = 6379
STORE_BYTES = 100 << 20
STARTING_CORES = 2  # a raylet takes its time to start; on a slow host it would take minutes


def lab(*words):
    return subprocess.run([*LAB, *map(str, words)], check=True, capture_output=True, text=True).stdout.strip()


class RayHosts:
    """Raylets on the hosts of a lab that is up, the first with the head of the cluster. Use as a context.

    `python`: one that has Ray. `hosts`: cores by name. `config`: of Ray's own. Each host is a process namespace too:
    `ray stop` there ends nobody else's Ray, and nothing outlives the context.
    """

    def __init__(self, python, hosts, config=None):
        self._config = config or {}
        self._ray, self._hosts = [str(python), "-m", "ray.scripts.scripts"], hosts
        self._inits = {}
        self._folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # Ray's sockets lie below it, and their names must be short
        self.address = f"{lab('ip', next(iter(hosts)))}:{PORT}"

    def __enter__(self):
        try:
            for name in self._hosts:
                lab("cpu", name, STARTING_CORES)
                self.start(name)
            for name, cores in self._hosts.items():
                lab("cpu", name, cores)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for shell in self._inits.values():
            shell.stdin.close()
            shell.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, name):
        """`ray start` on a host that has none."""
        first = name == next(iter(self._hosts))
        where = ["--head", f"--port={PORT}", f"--temp-dir={self._folder}", "--include-dashboard=false", "--disable-usage-stats",
                 f"--system-config={json.dumps(self._config)}"]
        words = [*self._ray, "start", *(where if first else [f"--address={self.address}"]), f"--node-ip-address={lab('ip', name)}",
                 f"--node-name={name}", "--num-cpus=1", f"--object-store-memory={STORE_BYTES}", "--resources", json.dumps({"cpu_node": 1})]
        if name in self._inits:
            subprocess.run([*self.on(name), *words], check=True, capture_output=True)
            return
        unshared = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        # bash waits for the orphans of its namespace: while a killed raylet is a zombie, what it started believes it alive.
        script = '"$@" >&2 || exit; echo started; read -r _'
        shell = subprocess.Popen([*LAB, "exec", name, "--", *unshared, "bash", "-c", script, "bash", *words], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._inits[name] = shell
        if shell.stdout.readline() != "started\n":
            shell.stdin.close()
            raise RuntimeError(f"ray start on {name}: {shell.stderr.read()[-2000:]}")

    def stop(self, name):
        """`ray stop` on a host."""
        subprocess.run([*self.on(name), *self._ray, "stop"], check=True, capture_output=True)

    def on(self, name, directory="/"):
        """What stands before a command that is to run in a directory of a host."""
        init, = self.processes(name)[:1]
        return [*LAB, "exec", name, "--", "nsenter", "--target", str(init), "--pid", "--mount", f"--wd={directory}", "--"]

    def processes(self, name):
        """The processes of a host but the one that starts them, the host's first process first."""
        listed = subprocess.run(["ip", "netns", "pids", f"lab-{name}"], capture_output=True, text=True).stdout.split()
        outside = self._inits[name].pid
        return sorted((int(pid) for pid in listed if int(pid) != outside), key=_started)


def _started(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]), pid
    except OSError:
        return sys.maxsize, pid  # it ended meanwhile
