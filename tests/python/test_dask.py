"""Runs on a Dask cluster of two workers on this machine."""

import os
import queue
import signal
import subprocess
import sys
import threading

import pytest

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")

import motley as package  # noqa: E402
from conftest import SCRIPTS  # noqa: E402
from processes import await_end, children, command_lines, having, parent  # noqa: E402
from program import PATIENCE_S, arguments, settings  # noqa: E402

import motley.dask  # noqa: E402

ON_BOTH = settings(train_min_workers=2, train_shares=[1])


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, cluster.get_client() as client:
        yield client


def joined():
    """The processes of the workers, and nobody else's on this machine."""
    return [process for number in range(2) for process in having("join", "--json", "--name", f"127.0.0.1-{number}")]


def workers(event):
    return {part["worker"] for part in event["workers"] if part["samples"]} if event["event"] == "step" else set()


def test_a_script_trains_on_all_workers(client, motley):
    events = []
    run = package.dask.launch(client, str(SCRIPTS / "train_case.py"), ["groups"], options=ON_BOTH, on_event=events.append,
                              run=str(motley.directory / "run"))
    assert events[-1]["event"] == "done" and len(set().union(*map(workers, events))) == 2
    motley.audit(run)
    assert not joined()


def test_a_killed_process_comes_back(client, motley):
    """A worker's process, a whole Dask worker, which Dask starts again, and the coordinator's process."""
    events, failed, run = queue.SimpleQueue(), [], str(motley.directory / "run")
    made_up = arguments(samples=20000, features=256, classes=20, test=0)
    endless = settings(train_global_batch=2048, train_epochs=100000)

    def launch():
        try:
            package.dask.launch(client, "softmax", made_up, options=[*ON_BOTH, *endless], run=run, on_event=events.put)
        except package.Error as error:
            failed.append(error)

    def wait(holds):
        while not holds(events.get(timeout=PATIENCE_S)):
            pass

    thread = threading.Thread(target=launch, daemon=True)
    thread.start()
    wait(lambda event: len(workers(event)) == 2)
    token = (motley.directory / "run" / "token").read_text().strip()
    assert not [line for line in command_lines().values() if any(token in word for word in line)]
    for victim in (lambda process: process, parent):
        os.kill(victim(joined()[0]), signal.SIGKILL)
        wait(lambda event: event["event"] == "worker" and event["change"] in ("left", "lost"))
        wait(lambda event: len(workers(event)) == 2)
    wait(lambda event: event["event"] == "checkpoint" and event["step"] > 0)
    os.kill(having("--json", "--run", run)[0], signal.SIGKILL)
    wait(lambda event: event["event"] == "run" and event["first_step"] > 0)
    wait(lambda event: len(workers(event)) == 2)
    left = joined()
    os.kill(having("--json", "--run", run)[0], signal.SIGINT)
    thread.join()
    assert failed[0].code == "interrupted"
    await_end(left)
    motley.audit(run)


def test_what_the_coordinator_says_is_raised(client, tmp_path):
    with pytest.raises(package.Error, match="no such script"):
        package.dask.launch(client, "nowhere.py", run=str(tmp_path / "run"))


def test_what_was_started_ends_with_who_started_it(client, tmp_path):
    code = ("import distributed, motley.dask\n"
            f"client = distributed.Client({client.scheduler.address!r})\n"
            "motley.dask.launch(client, 'softmax', run='run', on_event=lambda event: print(event['event'], flush=True), arguments=\n"
            f"    {arguments(samples=20000, features=256, classes=20, test=0)!r},\n"
            f"    options={[*ON_BOTH, *settings(train_epochs=100000)]!r})\n")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as launcher:
        while launcher.stdout.readline() != "step\n":
            assert launcher.poll() is None
        left = [*joined(), *children(launcher.pid)]
        assert len(left) >= 4  # two workers, the coordinator and its keeper
        launcher.kill()
    await_end(left)
