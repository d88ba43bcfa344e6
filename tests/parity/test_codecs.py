"""Gradients and weights in fewer bits teach a model as much: fashion-cnn with two workers on connections of their own, against fp32.

Losses of single steps differ as soon as weights do; what must agree is what was learned: the mean loss of the last steps, and the accuracy.
"""

import statistics

import pytest

import plain
from program import checkpoint

STEPS, BATCH, LAST = 300, 64, 100
LOSS, ACCURACY = {"bf16": 0.005, "int8": 0.005, "int4": 0.01}, 0.01


@pytest.fixture(scope="module")
def run(motley, tmp_path_factory):
    """run(up, down) -> (mean loss of the last steps, accuracy), each run once. The head has no device, so everything travels."""
    done = {}

    def once(up, down):
        if (up, down) in done:
            return done[up, down]
        folder = tmp_path_factory.mktemp(f"{up}-{down}")
        settings = [f"train.steps={STEPS}", f"train.global_batch={BATCH}", "train.seed=3", "train.min_workers=2", "train.shares=[5,3]",
                    f"wire.gradients={up}", f"wire.weights={down}",
                    *plain.recipe("fashion-cnn", "nesterov").settings]
        words = [word for setting in settings for word in ("--set", setting)]
        head = motley.start("train", "fashion-cnn", "--run", folder / "run", "--listen", "127.0.0.1:0", "--device", "none",
                            "--token-file", folder / "token", *words)
        head.read_along()
        workers = []
        for name in ("one", "two"):
            workers.append(motley.start("join", "--token-file", folder / "token", "--name", name, "--device", "cpu", "--threads", "1"))
            workers[-1].read_along()
        assert head.finish() == 0, head.say()
        for worker in workers:
            assert worker.finish() == 0, worker.say()
        assert motley.audit(folder / "run")["samples"] == STEPS * BATCH
        assert (checkpoint(folder / "run", STEPS) / "model.safetensors").is_file()
        losses = head.losses()
        done[up, down] = statistics.fmean(list(losses.values())[-LAST:]), head.of("eval")[-1]["accuracy"]
        return done[up, down]

    return once


# The coarsest says most of what is left for the next step; the others follow the same way with less.
@pytest.mark.parametrize("up, down", [("int4", "int4"), *(pytest.param(*codecs, marks=pytest.mark.nightly)
                                                          for codecs in (("int8", "int8"), ("bf16", "bf16"), ("int8", "fp32")))])
def test_learns_as_much_as_fp32(run, measure, up, down):
    loss, accuracy = run(up, down)
    exact_loss, exact_accuracy = run("fp32", "fp32")
    measure("mean loss", abs(loss - exact_loss) / exact_loss, LOSS[up])
    measure("accuracy", abs(accuracy - exact_accuracy), ACCURACY)
