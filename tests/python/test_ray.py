"""Runs on a Ray cluster of several raylets on this machine: workers, actors and nodes are killed, nodes join, and the run goes on."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import types

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")

import cases  # noqa: E402
import motley as package  # noqa: E402
from conftest import COMMAND, SCRIPTS, ScriptStarter  # noqa: E402
from program import PATIENCE_S, arguments, settings  # noqa: E402
from processes import await_end, children, command_lines, having, parent  # noqa: E402
from ray_cluster import LocalCluster  # noqa: E402

from motley._machines import _processes  # noqa: E402
from motley.ray import _job, _nodes, _tune, _words  # noqa: E402

ENDLESS = ["softmax", *arguments(samples=20000, features=256, classes=20, test=0, lr=0.02),
           *settings(train_global_batch=2048, train_seed=5, train_epochs=100000, train_shares=[1])]  # nobody is too slow to be used


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster("home", "first", "second") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def running(cluster, forks, tmp_path_factory):
    with ScriptStarter(str(COMMAND), tmp_path_factory.mktemp("running"), forks) as motley:
        yield motley, start(motley, cluster, *ENDLESS)


def start(motley, cluster, *words):
    return motley.start("train", "--on", "ray", "--address", cluster.address, "--run", "run", *words)


def wait_gone(head, name, after):
    """Ray asks a process group to end before it kills it, so a worker may have time for a farewell."""
    return head.wait_event("worker", lambda e: e["change"] in ("left", "lost"), after=after, worker=f"{name}/cpu")


def worker_of(name, motley):
    """(process of the worker, process of its actor)"""
    process, = having("join", "--json", "--name", name, below=motley.directory)
    return process, parent(process)


def with_children(*pids):
    return [each for pid in pids for each in (pid, *children(pid))]


def kill_coordinator(head, motley):
    """Its process, and then its actor: the run goes on after either."""
    head.wait_event("checkpoint", lambda event: event["step"] > 0)
    for with_actor in (False, True):
        process, = having("--json", "--run", str(motley.directory / "run"))
        actor, before = parent(process), head.seen()
        left = with_children(process, actor) if with_actor else [process]
        os.kill(actor if with_actor else process, signal.SIGKILL)
        await_end(left)
        assert head.wait_event("run", after=before)["first_step"] > 0
        head.wait_share("first/cpu", head.seen())


def test_a_script_trains_to_its_end(cluster, motley):
    head = start(motley, cluster, *settings(train_min_workers=3, train_shares=[1]), str(SCRIPTS / "train_case.py"), "groups")
    assert head.end(5 * PATIENCE_S) == 0, head.story()
    epochs = [line for line in head.text if line.startswith("epoch ")]
    assert epochs and len(epochs) == len({line for line in epochs}), head.story()  # the body runs on the head alone
    assert head.workers() == {"home/cpu", "first/cpu", "second/cpu"}
    assert not having("join", "--json", "--name", below=motley.directory)
    motley.audit("run")


def test_a_script_that_is_missing_on_the_nodes_is_named(cluster, motley):
    error = start(motley, cluster, "nowhere.py")
    assert error.end() == 2, error.story()
    assert "there is no such script" in error.error()["message"]


def test_train_from_python(cluster, tmp_path):
    code = ("import motley.ray\nevents = []\n"
            f"run = motley.ray.train('softmax', address={cluster.address!r}, run='run', on_event=events.append,\n"
            "    arguments=['samples=2000', 'features=16', 'classes=4', 'test=0'], options=['--set', 'train.steps=20'])\n"
            "print(run, events[-1]['event'])\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == [str(tmp_path / "run"), "done"], done.stderr


@pytest.mark.parametrize("overlap", ["none", "next"])
def test_train_in_rounds_from_python(cluster, motley, overlap):
    """A script whose optimizer only torch knows, on three nodes."""
    script = str(SCRIPTS / "train_case.py")
    words = [*settings(train_min_workers=3, train_shares=[1]), "--set", "train.rounds.steps=3", "--set", f"train.rounds.overlap={overlap}"]
    code = ("import motley.ray\nevents = []\n"
            f"run = motley.ray.train({script!r}, ['rmsprop'], address={cluster.address!r}, run='run', mode='rounds', options={words!r},\n"
            "    on_event=events.append)\n"
            "steps = [event for event in events if event['event'] == 'step']\n"
            "print(events[-1]['mode'], events[-1]['local_steps'], len(steps), max(len(step['workers']) for step in steps))\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=motley.directory)
    case = cases.make("rmsprop")
    assert done.stdout.split() == ["rounds", "3", str(3 * case.epochs), "3"], done.stderr
    assert motley.audit("run")["samples"] == case.epochs * cases.SIZE


def test_a_trial_of_tune(cluster, tmp_path):
    pytest.importorskip("ray.tune", reason="Ray Tune is not installed: pip install 'ray[tune]'", exc_type=ImportError)
    code = ("import ray, motley.ray\nfrom ray import tune\n"
            f"ray.init(address={cluster.address!r}, log_to_driver=False)\n"
            "trial = motley.ray.trainable('softmax', ['samples=2000', 'features=16', 'classes=4', 'test=0'],\n"
            "    options=['--set', 'train.steps=20'])\n"
            "tuner = tune.Tuner(trial, param_space={'lr': tune.grid_search([0.5, 0.001])},\n"
            f"    run_config=tune.RunConfig(storage_path={str(tmp_path)!r}, verbose=0))\n"
            "print('best', tuner.fit().get_best_result('loss', 'min').config['lr'])\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "best 0.5" in done.stdout, done.stderr


SEARCHED = '''
import argparse, math, os
import torch
from torch.utils.data import DataLoader, TensorDataset
import motley

parser = argparse.ArgumentParser()
parser.add_argument("--kind")
parser.add_argument("--failed")
options = parser.parse_args()
torch.manual_seed(1)
x = torch.randn(400, 20)
y = (x @ torch.randn(20, 5)).argmax(1)
train, test = TensorDataset(x[:100], y[:100]), TensorDataset(x[100:], y[100:])
by_heart = options.kind == "learns by heart"
model = torch.nn.Sequential(torch.nn.Linear(20, 512), torch.nn.ReLU(), torch.nn.Linear(512, 5)) if by_heart else torch.nn.Linear(20, 5)


def loss(model, batch):
    output = model(batch[0])
    return torch.nn.functional.cross_entropy(output * math.inf if options.kind == "no number" and not model.training else output, batch[1])


def score(model, batch):
    right = (model(batch[0]).argmax(1) == batch[1]).sum()
    return {"f1": right, "threads": torch.full_like(batch[1], torch.get_num_threads()).sum()}


run = motley.Run(model, loss, DataLoader(train, 50, shuffle=True), torch.optim.SGD(model.parameters(), lr=0.3),
                 test=DataLoader(test, 300), score=score)
for epoch in run.epochs(30 if by_heart else 3):
    if options.kind == "fails once" and epoch.number == 2 and not os.path.exists(options.failed):
        open(options.failed, "w").close()
        raise RuntimeError("the disk was away for a moment")
'''


def search(cluster, directory, space, metric, mode, cpus=1, failures=0):
    """(the best trial's config, what came of each by its config's `kind`): trials of SEARCHED, one after the other."""
    pytest.importorskip("ray.tune", reason="Ray Tune is not installed: pip install 'ray[tune]'", exc_type=ImportError)
    (directory / "searched.py").write_text(SEARCHED)
    code = ("import json, pandas, ray, motley.ray\nfrom ray import tune\n"
            f"ray.init(address={cluster.address!r}, log_to_driver=False)\n"
            f"trial = tune.with_resources(motley.ray.trainable('searched.py'), {{'cpu': {cpus}}})\n"
            f"space = {{key: tune.grid_search(value) if isinstance(value, list) else value for key, value in {space!r}.items()}}\n"
            f"wanted = tune.TuneConfig(metric={metric!r}, mode={mode!r}, max_concurrent_trials=1)\n"
            f"again = tune.FailureConfig(max_failures={failures})\n"
            f"run = tune.RunConfig(storage_path={str(directory)!r}, verbose=0, failure_config=again)\n"
            "found = tune.Tuner(trial, param_space=space, tune_config=wanted, run_config=run).fit()\n"
            "frames = {each.config['kind']: [str(each.error or ''), json.loads(each.metrics_dataframe.to_json(orient='records'))]\n"
            "          for each in found}\n"
            "print(json.dumps([found.get_best_result().config, frames]))\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=directory)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_trials_are_judged_by_what_their_evaluations_say(cluster, tmp_path):
    """The best is not who has the least loss of training, nor who has none that is a number; a score by any name can be wanted; part of a
    processor is one thread."""
    best, found = search(cluster, tmp_path, {"kind": ["plain", "learns by heart", "no number"]}, "f1", "max", cpus=0.5)
    assert not any(error for error, _ in found.values()), found
    for kind, epochs in {"plain": 3, "learns by heart": 30, "no number": 3}.items():
        reports = found[kind][1]
        assert [report["epoch"] for report in reports] == list(range(epochs)), kind
        assert all(report["threads"] == 1 and 0 <= report["f1"] <= 1 for report in reports), kind
        assert all((report["loss"] is None) == (kind == "no number") for report in reports), kind
    assert best["kind"] in found
    # Learnt by heart, the training's loss is next to nothing and the test's is not.
    assert found["learns by heart"][1][-1]["loss"] > 0.3


def test_a_trial_that_is_tried_again_goes_on_with_its_run(cluster, tmp_path):
    failed = tmp_path / "failed"
    _, found = search(cluster, tmp_path, {"kind": "fails once", "failed": str(failed)}, "loss", "min", failures=1)
    error, reports = found["fails once"]
    assert failed.exists() and not error
    assert [report["epoch"] for report in reports] == [0, 1, 2], reports


def test_a_score_with_a_name_of_tunes_is_refused():
    event = {"event": "eval", "step": 3, "epoch": 0, "loss": None, "accuracy": None, "samples": 9, "weights": "exact"}
    found = _tune._metrics({**event, "scores": {"f1": 0.5, "recall": None}})
    assert found.keys() == {"step", "epoch", "loss", "accuracy", "samples", "f1", "recall"} and found["f1"] == 0.5
    assert all(math.isnan(found[name]) for name in ("loss", "accuracy", "recall"))
    for name in ("loss", "done", "training_iteration", "config"):
        with pytest.raises(package.Error, match=f"the score '{name}' has the name of something else"):
            _tune._metrics({**event, "scores": {name: 1.0}})


def test_what_the_driver_starts_ends_with_it(cluster, motley):
    """Where the coordinator could not have its port back, which all workers have to hear, as well."""
    head = start(motley, cluster, *ENDLESS, "--listen", "0.0.0.0:0")
    head.wait_share("first/cpu")
    kill_coordinator(head, motley)
    coordinator, = having("--json", "--run", str(motley.directory / "run"))
    left = [coordinator, parent(coordinator)]
    head.kill()
    await_end(left)
    while left := having("join", "--json", "--name", below=motley.directory):  # workers may just have been made anew
        await_end(left)


# --- one run, to which one thing after the other happens ---------------------------------------------------------------------


def test_a_recipe_trains_on_all_nodes(cluster, running):
    motley, head = running
    for name in ("home", "first", "second"):
        head.wait_share(f"{name}/cpu")
    token = (motley.directory / "run" / "token").read_text().strip()
    assert not [line for line in command_lines().values() if any(token in word for word in line)]
    assert not [file for file, text in cluster.logs().items() if token in text]
    assert token not in head.story()


def test_killed_workers_and_actors_come_back(running):
    motley, head = running
    head.wait_share("first/cpu", head.seen())
    head.wait_share("second/cpu", head.seen())
    worker, actor = worker_of("first", motley)
    before = head.seen()
    os.kill(worker, signal.SIGKILL)
    head.wait_event("worker", worker="first/cpu", change="lost", after=before)
    head.wait_text("ray: first: its worker was started again")
    head.wait_share("first/cpu", head.seen())

    worker, actor = worker_of("second", motley)
    left, before = with_children(worker, actor), head.seen()
    os.kill(actor, signal.SIGKILL)
    await_end(left)
    wait_gone(head, "second", before)
    head.wait_text("ray: second: Ray started its actor again")
    head.wait_share("second/cpu", head.seen())


def test_a_killed_coordinator_goes_on_with_the_run(running):
    motley, head = running
    head.wait_share("first/cpu", head.seen())
    kill_coordinator(head, motley)


def test_a_node_leaves_and_another_joins(cluster, running):
    motley, head = running
    cluster.add("brief")
    head.wait_share("brief/cpu")
    left, before = with_children(*worker_of("brief", motley)), head.seen()
    cluster.kill("brief")
    wait_gone(head, "brief", before)
    head.wait_text("ray: brief: its node left the cluster")
    await_end(left)
    head.wait_share("first/cpu", head.seen())
    cluster.add("late", cpu_node=1)
    head.wait_share("late/cpu")


def test_ctrl_c_stops_in_good_order_and_leaves_nothing(running):
    motley, head = running
    for name in ("first", "second"):
        head.wait_share(f"{name}/cpu", head.seen())
    left = with_children(*worker_of("first", motley), *worker_of("second", motley))
    head.stop()
    assert head.named("checkpoint")
    await_end(left)
    motley.audit("run")


# --- without a cluster -------------------------------------------------------------------------------------------------------


def test_who_is_not_in_a_cluster_is_told_how(motley):
    error = motley.fails("train", "--on", "ray", "--address", "127.0.0.1:1", "softmax", status=1)
    assert "no Ray cluster answers" in error["message"] and "ray start" in error["try"]


@pytest.mark.parametrize("words, said", [(["--on", "dask"], "expected ray"), (["--on", "ray", "--device", "cpu"], "--device has no place"),
                                         (["--on", "ray", "--token-file", "x"], "--token-file has no place")])
def test_what_has_no_place_on_ray_is_refused(words, said):
    with pytest.raises(package.Error, match=said):
        _words.read(["train", *words, "softmax"])


def test_without_ray_it_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['ray'] = None; from motley._command import main; sys.exit(main(['train', '--on', 'ray', 'x']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "pip install ray" in done.stderr, done.stderr


@pytest.mark.parametrize("system, name", [("darwin", "macOS"), ("win32", "Windows")])
def test_systems_that_need_a_variable(system, name):
    with pytest.raises(package.Error, match=f"{name} need RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=1"):
        _job.check_platform(system, {})
    _job.check_platform(system, {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"})
    _job.check_platform("linux", {})


def node(**resources):
    return {"NodeID": "abcdef", "Resources": {name: float(amount) for name, amount in resources.items()}}


@pytest.mark.parametrize("resources, expected", [
    (dict(CPU=4), [("cpu", 4, 0, ())]),
    (dict(CPU=4, cpu_node=1), [("cpu", 4, 0, ("cpu_node",))]),
    (dict(CPU=8, GPU=2), [("gpu:0", 1, 1, ()), ("gpu:0", 1, 1, ())]),
    (dict(CPU=8, GPU=1, cuda=1), [("gpu:0", 1, 1, ("cuda",))]),
    (dict(CPU=8, cuda=2), [("gpu:0", 1, 0, ("cuda",)), ("gpu:1", 1, 0, ("cuda",))]),
    (dict(CPU=8, mps=1), [("gpu:0", 1, 0, ("mps",))]),
    (dict(CPU=8, GPU=1, mps=1, cpu_node=1), [("gpu:0", 1, 1, ("mps",)), ("cpu", 7, 0, ("cpu_node",))]),
    (dict(CPU=1, GPU=2), [("gpu:0", 0, 1, ()), ("gpu:0", 0, 1, ())]),
    (dict(memory=1e9), []),
])
def test_places_of_a_node(resources, expected):
    assert [(place.device, place.cpus, place.gpus, place.own) for place in _nodes.places(node(**resources))] == expected


def test_places_on_the_head_node_are_one_process():
    found = _nodes.places(node(CPU=8, GPU=2, cpu_node=1), threads=3)
    assert _nodes.devices_of(found) == ["gpu:0", "gpu:1", "cpu"]
    assert _nodes.together(found) == {"num_cpus": 5, "num_gpus": 2, "resources": {"cpu_node": 1}}


def test_nodes_of_one_name_are_told_apart():
    nodes = [{"NodeID": number * 8, "NodeName": name} for number, name in (("1", "a"), ("2", "b"), ("3", "a"))]
    assert list(_nodes.names(nodes).values()) == ["a-1111", "b", "a-3333"]


def test_words_of_the_command_and_of_the_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wanted = _words.read(["train", "--on", "ray", "--set", "train.seed=4", "x.py", "--lr", "1", "--threads", "2", "--", "--run", "theirs"])
    assert wanted.script_arguments == ["--lr", "1", "--run", "theirs"]
    assert (wanted.target, wanted.threads, wanted.run) == ("x.py", 2, "runs/x-1")
    assert _words.read(["train", "--on=ray", "--set", "train.seed=4", "softmax"]).target == "softmax"


def test_flags_of_train_that_take_no_value():
    shown = subprocess.run([str(COMMAND), "train", "--help"], capture_output=True, text=True, check=True).stdout
    flags = set(re.findall(r"^  (--[a-z-]+)(?! [A-Z]+[\s:])[ \n]", shown, re.MULTILINE))  # behind the others stands a TYPE
    flags -= {f"--{name.replace('_', '-')}" for name in _words.PLACED_BY_RAY}
    assert {"--pair", "--new-token", "--no-keep-awake"} <= flags == set(_words.WITHOUT_VALUE)
    for flag in _words.WITHOUT_VALUE:
        assert _words.read(["train", "--on", "ray", flag, "softmax"]).target == "softmax"


def test_who_said_what_is_wrong_is_not_started_again():
    assert _processes.starts_again(-9, "", 0) and not _processes.starts_again(-9, "", _processes.RESTARTS_MAX)
    assert _processes.starts_again(1, "busy", 0)
    assert not any(_processes.starts_again(status, "input", 0) for status in (0, 1, 2, 130))


@pytest.mark.parametrize("share, threads", [(0, "1"), (0.5, "1"), (1.5, "1"), (3, "3")])
def test_a_trial_computes_with_the_processors_that_it_was_given(monkeypatch, share, threads):
    words = []

    class Started(Exception):
        pass

    def supervised(command, _directory):
        words.extend(command(False))
        raise Started

    assigned = types.SimpleNamespace(get_assigned_resources=lambda: {"CPU": share})
    monkeypatch.setattr(_tune.tune, "get_context", lambda: types.SimpleNamespace(get_trial_id=lambda: "trial"))
    monkeypatch.setattr(_tune.ray, "get_gpu_ids", lambda: [])
    monkeypatch.setattr(_tune.ray, "get_runtime_context", lambda: assigned)
    monkeypatch.setattr(_tune, "Supervised", supervised)
    with pytest.raises(Started):
        _tune.trainable("softmax", (), ())({})
    assert words[words.index("--threads") + 1] == threads
