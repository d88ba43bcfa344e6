"""What goes wrong in a script is named where it happens, with what to try; a broken worker does not stop a run."""

import subprocess
import sys

import pytest

from conftest import SCRIPTS, train

HERE = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1"]
WRONG = str(SCRIPTS / "wrong.py")

SAID = {
    "iterable": ("iterable data set", "__getitem__"),
    "sampler": ("DistributedSampler", "global batch"),
    "closure": ("LBFGS cannot be stepped by itself", "AdamW"),
    "double_state": ("'average' (torch.float64 [5])", "AdamW"),
    "plateau": ("ReduceLROnPlateau follows evaluations", "test=loader"),
    "vector_loss": ("a tensor of [8]", "mean over the samples"),
    "detached": ("no gradient", "detach"),
}


@pytest.mark.parametrize("what", sorted(SAID))
def test_what_cannot_be_trained_is_refused_at_the_start(motley, what):
    message, remedy = SAID[what]
    error = motley.fails("train", WRONG, *HERE, what)
    assert error["code"] == "input", error
    assert message in error["message"] and remedy in error["try"], error


def start_head(motley, what, device="none", run="run"):
    return motley.start("train", WRONG, "--run", run, "--listen", "127.0.0.1:0", "--device", device, "--threads", "1", "--name", "head",
                        "--token-file", "token", what, place(motley, "head"))


def place(motley, name):
    """A path of this machine's own, which a script may be started with."""
    (motley.directory / name).mkdir(exist_ok=True)
    return f"./{name}"


def join(motley, name, what, here="elsewhere"):
    return motley.start("join", "--token-file", "token", WRONG, "--name", name, "--threads", "1", what, place(motley, here))


def test_an_exception_on_one_worker_shows_on_the_head_and_the_run_goes_on(motley):
    head = start_head(motley, "raises")
    good, broken = join(motley, "good", "raises"), join(motley, "broken", "raises", "broken")
    head.wait_event("worker", worker="broken/cpu", change="excluded")
    head.wait_event("step", lambda event: event["workers"][0]["worker"] == "good/cpu", after=head.seen())
    assert broken.end() != 0, broken.story()  # once the head, which is still there, has refused it
    head.stop()
    said = "\n".join(head.text)
    assert "broken/cpu could not compute its share" in said, head.story()
    assert "ValueError: no such token: 17" in said and "in broken_loss" in said and "wrong.py" in said
    assert "ValueError: no such token: 17" in "\n".join(broken.text)
    motley.audit("run")


def test_an_exception_on_the_only_worker_ends_the_run(motley):
    error = motley.fails("train", WRONG, *HERE, "raises", "broken")
    assert "no such token: 17" in error["message"], error


@pytest.mark.parametrize("what, said", [("other_model", "0.weight"), ("other_data", "200 samples")])
def test_another_script_is_refused_with_the_difference(motley, what, said):
    head = start_head(motley, what, device="cpu")
    other = join(motley, "other", what, "other")
    refused = head.wait_event("worker", change="refused")
    assert said in refused["reason"], refused
    assert other.end() == 1, other.story()
    assert said in other.error()["message"], other.story()
    head.kill()


def test_a_worker_without_the_script_is_told_to_bring_it(motley):
    start_head(motley, "interrupted")
    other = motley.start("join", "--token-file", "token", "--name", "other")
    assert other.end() != 0
    assert "Python script" in other.error()["message"], other.story()


def test_a_script_for_a_run_of_something_else_is_refused(motley):
    motley.start("train", "softmax", "--run", "run", "--listen", "127.0.0.1:0", "--device", "none", "--token-file", "token")
    other = join(motley, "other", "nothing")
    assert other.end() != 0
    assert "the run trains 'softmax'" in other.error()["message"], other.story()


def test_ctrl_c_leaves_a_checkpoint(motley):
    program = motley.start("train", WRONG, *HERE, "interrupted")
    assert program.end() == 130, program.story()
    assert program.error()["code"] == "interrupted"
    assert program.named("checkpoint")[-1]["step"] > 0
    motley.audit("run")


def test_who_joined_a_run_that_the_script_leaves_is_told_that_it_is_over(motley):
    head = start_head(motley, "leaves")
    other = join(motley, "other", "leaves")
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    assert "Ctrl-C" not in "\n".join(head.text)


def test_other_arguments_than_those_of_the_head_are_refused(motley):
    head = start_head(motley, "long")
    other = motley.start("join", "--token-file", "token", WRONG, "--threads", "1", "--name", "other", "long")
    assert other.end() == 1, other.story()
    assert "the head started the script with the arguments 'long ./head'" in other.error()["message"], other.story()
    assert "SCRIPT.py -- long ./head" in other.error()["try"]
    head.kill()


def test_an_exception_in_the_body_ends_the_run_with_a_checkpoint(motley):
    program = motley.start("train", WRONG, *HERE, "body_raises")
    assert program.end() == 1, program.story()
    assert "ZeroDivisionError" in "\n".join(program.text)
    assert program.named("checkpoint")[-1]["step"] > 0
    assert program.error()["try"].startswith("motley train --resume --run "), program.story()
    motley.audit("run")


def test_a_body_that_ends_the_script_ends_the_run_for_all_and_says_how_it_goes_on(motley):
    head = start_head(motley, "body_exits", run="my run")
    other = join(motley, "other", "body_exits")
    assert head.end() == 7, head.story()
    assert other.end() == 0, other.story()
    directory = motley.directory / "my run"
    command = f"goes on with: motley train --resume --run '{directory}' {WRONG} body_exits ./head"
    assert command in "\n".join(head.text), head.story()
    assert head.named("checkpoint")[-1]["step"] > 0


def test_plan_measures_a_script(motley):
    plan = motley.run("plan", WRONG, "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1", "--seconds", "1", "--set",
                      "train.epochs=100000", "nothing")
    assert plan.process.returncode == 0, plan.story()
    assert plan.named("plan")[-1]["predicted"]["samples_per_s"] > 0


def test_ctrl_c_while_nobody_computes(motley):
    head = start_head(motley, "nothing")
    head.wait_event("run")
    head.stop()


def test_ctrl_c_on_one_machine_leaves_the_run_to_the_others(motley):
    head = start_head(motley, "long")
    good, leaves = join(motley, "good", "long"), join(motley, "leaves", "long")
    head.wait_event("worker", worker="leaves/cpu", change="joined")
    head.wait_event("worker", worker="good/cpu", change="joined")
    leaves.interrupt()
    assert leaves.end() == 0, leaves.story()
    head.wait_event("worker", worker="leaves/cpu", change="left")
    head.wait_event("step", lambda event: event["workers"][0]["worker"] == "good/cpu", after=head.seen())
    good.kill()
    head.kill()


def test_a_fork_after_the_start_is_harmless(motley):
    train(motley, "wrong.py", "forks")


@pytest.mark.parametrize("missing", ["torch", "numpy"])
def test_the_package_says_what_to_install(tmp_path, missing):
    code = (f"import sys; sys.modules[{missing!r}] = None; import motley\n"
            "print(motley.__version__)\n"
            "try: motley.Run\n"
            "except motley.Error as error: print(error)\n")
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert f"needs {missing}" in said and f"pip install {missing}" in said
