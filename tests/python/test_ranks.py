"""`motley train` and `plan` as several processes that mpirun or srun start with the same words: the first is the head, the others join."""

import os
import shutil
import stat
import sys

import pytest
from conftest import SCRIPTS
from program import PATIENCE_S, arguments, settings
from slurm_cluster import SlurmCluster, why_no_slurm

SOFTMAX = ["softmax", "--device", "cpu", *arguments(samples=2000, features=16, classes=4, test=0), *settings(train_global_batch=256)]
SHORT = [*SOFTMAX, *settings(train_steps=40, train_shares=[1])]
MPIRUN = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--oversubscribe", "--bind-to", "none"]
mpirun = pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not installed: apt install openmpi-bin")


def slurm(number, count=2):
    """What srun says to a task; two tasks a node."""
    variables = {"SLURM_JOB_ID": 71, "SLURM_STEP_ID": 0, "SLURM_PROCID": number, "SLURM_STEP_NUM_TASKS": count,
                 "SLURM_LOCALID": number % 2, "SLURM_NODEID": number // 2, "SLURM_STEP_TASKS_PER_NODE": "2(x2)"}
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


def mpich(number, count=2):
    return ["env", f"PMI_RANK={number}", f"PMI_SIZE={count}"]


def check(motley, head, run, count):
    """All ranks took part from the first step on."""
    assert head.end() == 0, head.story()
    assert head.named("done") and len(head.workers()) == count, head.story()
    assert len(head.named("step")[0]["workers"]) == count
    motley.audit(run)


@mpirun
def test_a_recipe_under_mpirun(motley):
    head = motley.start("train", *SHORT, prefix=[*MPIRUN, "-n", "4"])
    head.end()
    run, = os.listdir(motley.directory / "runs")
    check(motley, head, f"runs/{run}", 4)
    tokens = [file for file in (motley.directory / "runs" / run).iterdir() if file.name.endswith("token")]
    assert len(tokens) == 1 and all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in tokens)


def check_script(head):
    """The body of an epoch runs in the first rank alone."""
    assert head.process.wait(PATIENCE_S) == 0, head.story()
    assert "-1/cpu" in " ".join([*head.text, *head.not_events]), head.story()
    epochs = [line for line in head.text if line.startswith("epoch ")]
    assert epochs and len(epochs) == len(set(epochs)), head.story()


@mpirun
def test_a_script_by_itself_under_mpirun(motley):
    motley.path = sys.executable
    check_script(motley.start(str(SCRIPTS / "train_case.py"), "groups", prefix=[*MPIRUN, "-n", "2"]))


def test_a_script_of_several_ranks(motley):
    head, other = [motley.start("train", str(SCRIPTS / "train_case.py"), "groups", prefix=slurm(number)) for number in (0, 1)]
    check_script(head)
    assert other.end() == 0 and not other.events, other.story()


def check_plan(motley, head, count):
    """All ranks were measured, and nothing is left of it."""
    assert head.end() == 0, head.story()
    assert len(head.named("plan")[-1]["shares"]) == count, head.story()
    assert not os.listdir(motley.directory)


@mpirun
def test_a_plan_under_mpirun(motley):
    check_plan(motley, motley.start("plan", *SOFTMAX, "--seconds", "1", prefix=[*MPIRUN, "-n", "3"]), 3)


def test_a_script_is_planned_by_ranks(motley):
    words = ["plan", str(SCRIPTS / "train_case.py"), "--seconds", "1", "--device", "cpu", "--threads", "1", "groups"]
    head, other = [motley.start(*words, prefix=slurm(number)) for number in (0, 1)]
    check_plan(motley, head, 2)
    assert other.end() == 0 and not other.events, other.story()


@pytest.mark.skipif(bool(why_no_slurm()), reason=f"no Slurm: {why_no_slurm()}")
def test_a_recipe_under_srun(motley):
    with SlurmCluster() as slurm_cluster:
        srun = ["env", f"SLURM_CONF={slurm_cluster.conf}", "srun", "--overcommit", "--kill-on-bad-exit", "-n", "3"]
        check(motley, motley.start("train", *SHORT, prefix=srun), "runs/slurm-1.0", 3)


def test_tasks_as_the_variables_of_srun_say(motley):
    """The last task comes first."""
    ranks = [motley.start("train", *SHORT, prefix=slurm(number, 3)) for number in (2, 1)]
    ranks[0].wait_text("waiting for runs/slurm-71.0/slurm-71.0.token")
    head = motley.start("train", *SHORT, prefix=slurm(0, 3))
    check(motley, head, "runs/slurm-71.0", 3)
    for rank in ranks:
        assert rank.end() == 0 and not rank.events, rank.story()


def test_a_launcher_that_does_not_name_its_jobs_needs_a_token_file(motley):
    error = motley.fails("train", *SHORT, prefix=mpich(0))
    assert "--token-file" in error["try"]
    head, other = [motley.start("train", *SHORT, "--run", "run", "--token-file", "token", prefix=mpich(number)) for number in (0, 1)]
    check(motley, head, "run", 2)
    assert other.end() == 0


def test_a_head_that_does_not_compute(motley):
    words = ["train", *SHORT, "--device", "none"]
    words.remove("cpu")
    words.remove("--device")
    head, other = [motley.start(*words, prefix=slurm(number)) for number in (0, 1)]
    check(motley, head, "runs/slurm-71.0", 1)
    assert other.end() == 0


@pytest.mark.parametrize("prefix", [slurm(0, 1), ["env", "SLURM_JOB_ID=71", "SLURM_PROCID=0", "SLURM_NTASKS=4"]],
                         ids=["one task", "a batch script"])
def test_one_process_is_a_head_as_ever(motley, prefix):
    head = motley.run("train", *SHORT, prefix=prefix)
    assert head.process.returncode == 0 and os.listdir(motley.directory / "runs") == ["softmax-1"], head.story()


@pytest.mark.parametrize("prefix, said", [
    (["env", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=many"], "OMPI_COMM_WORLD_SIZE: expected a number"),
    (slurm(256, 300), "up to 256, found '300'"),
])
def test_words_of_a_launcher_that_make_no_sense(motley, prefix, said):
    assert said in motley.fails("train", *SHORT, prefix=prefix)["message"]
