"""train.global_batch=auto: the batch follows the noise; resumption and audit follow the batch."""

from program import settings


# A step is nearly all waiting, so that a larger batch pays. Fixed shares keep both workers in: there must be contributions to
# compare. The rate is so low that the gradient stays what it is. So many epochs take seconds: the kill finds the run under way.
EPOCHS = 100
DATA = settings(data_uri="synthetic:20000:32:10", data_test_uri="synthetic:100:32:10", train_global_batch="auto:16",
                train_epochs=EPOCHS, train_seed=9, train_min_workers=2, train_shares=[3, 1], train_verify=0, optimizer_lr=0.0001,
                train_checkpoint_seconds=0.1)
HERE = ("--run", "run", "--device", "cpu", "--device", "cpu", "--threads", "1", "--listen", "127.0.0.1:0")


def test_the_batch_grows_and_the_run_can_be_resumed(motley):
    first = motley.start("train", "softmax", *DATA, *HERE)
    grown = first.wait_event("step", lambda event: event["global_batch"] > 16)
    first.wait_event("checkpoint", lambda event: event["step"] > grown["step"])
    first.kill()
    again = motley.run("train", "--resume", *HERE)
    assert again.process.returncode == 0, again.story()

    steps = [e["step"] for e in again.named("step")]
    assert steps == list(range(steps[0], again.named("done")[0]["steps"])) and steps[-1] < EPOCHS * 1250 - 1
    assert again.named("step")[0]["global_batch"] > 16, "it starts again at the batch it had"
    assert steps[0] > grown["step"], "it goes on from a checkpoint of the grown batch, or later"
    audit = motley.audit("run")
    assert audit["samples"] == EPOCHS * 20000 and audit["epochs"] == EPOCHS
    order = motley.start("audit", "run", "--order", "1")
    order.process.wait()
    order.wait_until(lambda: order.over, "its output closed")
    numbers = [int(line.split("'")[1].removesuffix("\\n")) for line in order.not_events]
    assert sorted(numbers) == list(range(20000))
