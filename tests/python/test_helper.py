"""Scripts whose head is helped by machines that it never waits for: what they come to, against a plain PyTorch program that is told which
samples were computed with the weights of the step before; what is not for helpers is refused by name."""

import pytest
import torch

import cases
import plain
from conftest import SCRIPTS
from sample_order import sample_order
from test_parity import collated, weights_of

REFUSED = {"rmsprop": "optimizer", "normed": "running statistics"}
HERE = ["--run", "run", "--device", "cpu", "--threads", "1", "--listen", "127.0.0.1:0", "--set", "train.verify=0"]
SCRIPT = str(SCRIPTS / "helped.py")


def begin(motley, name):
    """A slow head that waits for its first helper, which comes when the head's own device is there."""
    there = ["--token-file", "token", "--set", "train.min_workers=2"]
    head = motley.start("train", SCRIPT, *HERE, *there, name, prefix=["env", "SLOW_HEAD=1"])
    head.wait_event("worker", change="joined")
    return head, helper(motley, name)


def helper(motley, name):
    return motley.start("join", "--token-file", "token", SCRIPT, "--threads", "1", "--name", "helper", name)


def told_by(head):
    """Of each step its epoch, its samples, and how many of them were computed one step before: the last ones."""
    return [(event["epoch"], event["samples"], sum(part.get("early", 0) for part in event["workers"])) for event in head.named("step")]


def add(case, pick, sums):
    """The gradients of these samples' sum of losses, at the weights as they are; the weight of the samples."""
    case.model.zero_grad()
    found = case.loss(case.model, collated(case, case.train, pick))
    loss, weight = found if isinstance(found, tuple) else (found, len(pick))
    (loss * weight).backward()
    for p in case.model.parameters():
        if p.grad is not None:
            sums[p] = sums.get(p, 0) + p.grad.clone()
    return float(weight)


def put(parameters, values):
    with torch.no_grad():
        for p, value in zip(parameters, values, strict=True):
            p.copy_(value)


def program_of(name, told):
    case = cases.make(name)
    parameters = list(case.model.parameters())
    before, position, norm_before = None, 0, None
    case.model.train()
    for number, (epoch, samples, early) in enumerate(told):
        position = 0 if number == 0 or told[number - 1][0] != epoch else position
        pick = sample_order(cases.SEED, epoch, cases.SIZE).tolist()[position : position + samples]
        position += samples
        sums = {}
        now = [p.detach().clone() for p in parameters]
        weight = add(case, pick[: samples - early], sums)
        if early:
            put(parameters, before)
            weight += add(case, pick[samples - early :], sums)
            put(parameters, now)
        before = now
        case.model.zero_grad()
        for p, total in sums.items():
            p.grad = total / weight
        if case.clip_norm:
            norm, _ = plain.clip(list(sums), case.clip_norm, norm_before)
            norm_before = norm if case.clip_norm_of == "previous" else None
        case.optimizer.step()
        if case.schedule and (case.schedule_every == "step" or position == cases.SIZE):
            case.schedule.step()
    return case


def like_the_program(motley, head, name):
    told = told_by(head)
    case = program_of(name, told)
    aliases = {"out.weight"} if name == "tokens" else set()
    expected = {key: value for key, value in case.model.state_dict().items() if key not in aliases}
    found = {key: value for key, value in weights_of(motley, head).items() if key not in aliases}
    assert plain.worst_weights(found, expected) <= 1e-5
    audit = motley.audit("run")
    assert audit["samples"] == case.epochs * cases.SIZE and audit["missing"] == 0 and audit["duplicate"] == 0
    return [early for _, _, early in told]


@pytest.mark.parametrize("name", ["groups", "epochs", "clipped", "tokens"])
def test_a_helped_run_is_the_plain_program(motley, name):
    """AdamW with a rate for each step, which helpers leave alone while it rises; SGD with momentum; clipping; a mean over tokens."""
    head, other = begin(motley, name)
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    early = like_the_program(motley, head, name)
    assert sum(early) > 0
    (done,) = head.named("done")
    assert done["mode"] == "helper" and done["helped_samples"] == sum(early)
    assert all(10 * count <= samples for _, samples, count in told_by(head))
    if name == "groups":
        assert not any(early[:17]), "its rates rise"


def test_a_helper_that_is_killed_takes_no_sample_with_it(motley):
    head, other = begin(motley, "epochs")
    head.wait_event("eval")
    other.kill()
    assert head.end() == 0, head.story()
    like_the_program(motley, head, "epochs")


def test_a_run_with_helpers_goes_on_where_it_was(motley):
    head, other = begin(motley, "wide")
    head.wait_event("eval")
    head.kill()
    head = motley.start("train", SCRIPT, "--resume", *HERE, "wide")
    assert head.end() == 0, head.story()
    other.kill()
    audit = motley.audit("run")
    assert audit["samples"] == cases.make("wide").epochs * cases.SIZE and audit["missing"] == 0 and audit["duplicate"] == 0


def test_what_is_not_for_helpers_is_refused(motley):
    for name, word in REFUSED.items():
        error = motley.fails("train", SCRIPT, "--run", name, name)
        assert word in error["message"] and "helper" in error["message"]
