"""A head and one machine that joins it."""

ALONE = ["--listen", "127.0.0.1:0", "--threads", "1", "--device", "cpu"]


def in_one_run(head, other, target, words):
    """The head's program, after a run in which both had samples of each step. `head` and `other` start programs."""
    run = head.start("train", target, *words, "--run", "run", *ALONE, "--token-file", "token")
    run.wait_event("run")
    joined = other.start("join", "--token-file", "token", "--threads", "1", "--device", "cpu", "--name", "other")
    run.wait_until(lambda: run.over or joined.over, "the end of either")
    if joined.over:
        assert joined.end() == 0, f"{joined.story()}\n{run.story()}"
    assert run.end() == 0, run.story()
    assert joined.end() == 0, joined.story()
    assert any(part["worker"] == "other/cpu" and part["samples"] for step in run.named("step") for part in step["workers"])
    return run
