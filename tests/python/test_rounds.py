"""Scripts in rounds of local steps: what they come to where they must be exact steps, and against a plain PyTorch program of the same
rounds; what rounds do not do is refused by name."""

import json

import pytest
import torch

import cases
import plain
from conftest import SCRIPTS, train
from sample_order import sample_order
from test_parity import collated, epochs_of, evaluate, loop, weights_of

LOCAL, RATE, MOMENTUM = 3, 0.6, 0.9
# Of the way that a parameter came, on which its rounding comes together, and not of its length: in some orders of events a bias of `epochs`
# ends next to zero, and plain torch in float32 is then 1.5e-5 of its length from float64 in the same order. Of the way it is 5.4e-6 at the
# most (25 random orders; 2.4e-6 in the order without overlap), which two programs may each be to another side. One step more or less that
# one worker made before it had the weights of one round is 0.06 and more.
OVERLAPPED = 5e-5
PER_EPOCH = -(-cases.SIZE // 48)  # steps
REFUSED = {"plateau": "ReduceLROnPlateau", "normed": "running statistics"}


def rounds(local=LOCAL, rate=RATE, momentum=MOMENTUM, mode=True, overlap="none"):
    words = {"train.rounds.steps": local, "train.rounds.rate": rate, "train.rounds.momentum": momentum, "train.rounds.overlap": overlap}
    return [word for key, value in (({"train.mode": "rounds"} if mode else {}) | words).items() for word in ("--set", f"{key}={value}")]


def step(case, pick):
    """One of a worker's own, and the weight of its samples."""
    case.model.train()
    case.model.zero_grad()
    found = case.loss(case.model, collated(case, case.train, pick))
    loss, weight = found if isinstance(found, tuple) else (found, len(pick))
    loss.backward()
    if case.clip_norm:
        plain.clip([p for p in case.model.parameters() if p.grad is not None], case.clip_norm, None)
    case.optimizer.step()
    return float(weight)


def moved(there, onto, start):
    """As far from `onto` as it is from `start`."""
    with torch.no_grad():
        for mine, theirs, own in zip(there, onto, start, strict=True):
            mine.copy_(theirs + (mine - own))


def program_of(name, told):
    """The same rounds as a plain program. `told`: of each round its epoch, and of each worker in order of positions its samples and how
    many steps it made before it had the weights of the round. Gives the trained case, and how far each parameter came on its way."""
    outer = cases.make(name)
    trained = list(outer.model.parameters())
    far = [p.detach().norm().item() for p in trained]
    momentum, workers, position = None, {}, dict.fromkeys(range(outer.epochs), 0)
    for epoch, shares in told:
        order = sample_order(cases.SEED, epoch, cases.SIZE).tolist()
        local = -(-sum(count for _, count, _ in shares) // outer.batch)
        last = position[epoch] + sum(count for _, count, _ in shares) == cases.SIZE
        changes, weights = [torch.zeros_like(p) for p in trained], 0.0
        for worker, count, ahead in shares:
            own = workers.setdefault(worker, cases.make(name))
            samples = order[position[epoch] : position[epoch] + count]
            position[epoch] += count
            there = list(own.model.parameters())
            start = [mine.detach().clone() for mine in there]
            weight = 0.0
            for k in range(local):
                if k == ahead:
                    moved(there, trained, start)
                weight += step(own, samples[count * k // local : count * (k + 1) // local])
                if own.schedule and (own.schedule_every == "step" or last and k + 1 == local):
                    own.schedule.step()
            weights += weight
            changes = [change + weight * (theirs - mine) for change, mine, theirs in zip(changes, there, trained, strict=True)]
        changes = [change.detach() / weights for change in changes]
        momentum = changes if momentum is None else [MOMENTUM * b + change for b, change in zip(momentum, changes, strict=True)]
        with torch.no_grad():
            for i, (p, change, b) in enumerate(zip(trained, changes, momentum, strict=True)):
                p -= RATE * (change + MOMENTUM * b)
                far[i] += (RATE * (change + MOMENTUM * b)).norm().item()
    return outer, {parameter: length for (parameter, _), length in zip(outer.model.named_parameters(), far, strict=True)}


def told_by(program):
    shares = [[(part["worker"], part["samples"], part.get("ahead", 0)) for part in event["workers"]] for event in program.named("step")]
    return list(zip((event["epoch"] for event in program.named("step")), shares, strict=True))


def like_the_program(motley, head, name):
    told = told_by(head)
    assert len(told) == 3 * cases.make(name).epochs and all(len(shares) > 1 for _, shares in told if sum(n for _, n, _ in shares) > 12)
    case, far = program_of(name, told)
    found = weights_of(motley, head)
    ahead = sum(steps for _, shares in told for _, _, steps in shares)
    for parameter, value in case.model.named_parameters():  # tied ones once
        assert (found[parameter] - value.detach()).norm().item() <= (OVERLAPPED if ahead else 1e-5) * far[parameter], parameter
    last = epochs_of(head)[-1]
    for key, value in evaluate(case).items():
        assert last[key] == pytest.approx(value, rel=1e-4)
    assert last["step"] == case.epochs * PER_EPOCH
    assert motley.audit("run")["samples"] == case.epochs * cases.SIZE
    return ahead


@pytest.mark.parametrize("name", ["groups", "epochs", "tokens", "rmsprop", "lookahead"])
def test_three_workers_are_the_plain_program(motley, name):
    """AdamW with a schedule, SGD with momentum, a mean over tokens, and optimizers that only torch knows."""
    assert like_the_program(motley, train(motley, "train_case.py", name, workers=3, options=rounds()), name) == 0


@pytest.mark.parametrize("name", ["groups", "epochs", "rmsprop"])
def test_rounds_that_overlap_are_the_plain_program_too(motley, name):
    """Each goes on from where it is, and from the weights of the round when these are there: it says after how many steps."""
    assert like_the_program(motley, train(motley, "train_case.py", name, workers=3, options=rounds(overlap="next")), name) > 0


@pytest.mark.parametrize("name", ["groups", "rmsprop"])
def test_a_machine_that_joins_has_its_own_optimizer(motley, name):
    """The script says that it wants rounds, processes read its samples, and the joiner is looked at before it counts."""
    script = str(SCRIPTS / "train_case.py")
    words = rounds(mode=False) + ["--set", "train.min_workers=2", "--set", "train.shares=[2,1]"]
    head = motley.start("train", script, "--run", "run", "--device", "cpu", "--threads", "1", "--token-file", "token", "--listen",
                        "127.0.0.1:0", *words, name, "1", "rounds")
    other = motley.start("join", "--token-file", "token", script, "--threads", "1", "--name", "other", name, "1", "rounds")
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    like_the_program(motley, head, name)


@pytest.mark.parametrize("name", ["epochs", "rmsprop"])
def test_one_step_a_round_is_the_plain_loop(motley, name):
    """With one worker whatever the optimizer is: the outer step is the worker's own."""
    case = cases.make(name)
    losses, _ = loop(case)
    program = train(motley, "train_case.py", name, options=rounds(1, 1, 0))
    assert plain.worst_loss(program.losses(), losses) <= 1e-5
    assert plain.worst_weights(weights_of(motley, program), case.model.state_dict()) <= 1e-5


@pytest.mark.parametrize("name", ["epochs", "rmsprop"])
def test_auto_measures_first_and_keeps_nothing_of_it(motley, name):
    """Nobody knows what rounds would cost a model that is not of text, so these are the steps of the plain loop; the machine that joined
    to be measured comes back for them. An optimizer that only torch knows runs on the head meanwhile."""
    case = cases.make(name)
    losses, _ = loop(case)
    script, words = str(SCRIPTS / "train_case.py"), ["--device", "cpu", "--threads", "1", "--listen", "127.0.0.1:0"]
    settings = ["--set", "train.mode=auto", "--set", "train.min_workers=2"]
    head = motley.start("train", script, "--run", "run", "--token-file", "token", *words, *settings, name)
    other = motley.start("join", "--token-file", "token", script, "--threads", "1", "--name", "other", name)
    assert head.end() == 0, head.story()
    assert other.end() == 0, other.story()
    (taken,) = head.named("mode")
    assert taken["mode"] == "exact" and taken["sentence"].startswith("exact steps: ")
    assert len(head.named("worker", worker="other/cpu", change="joined")) == 2
    assert plain.worst_loss(head.losses(), losses) <= 1e-5
    assert plain.worst_weights(weights_of(motley, head), case.model.state_dict()) <= 1e-5
    again = motley.start("train", script, "--run", "run", "--resume", *words, "--set", "train.mode=auto", name)
    assert again.end() == 0, again.story()
    assert not again.named("mode")


def test_auto_of_what_rounds_do_not_do_is_exact_and_says_why(motley):
    program = train(motley, "train_case.py", "plateau", options=["--set", "train.mode=auto"])
    assert any("auto takes exact steps" in line and "ReduceLROnPlateau" in line for line in program.text)
    assert program.named("done")[0]["mode"] == "exact"


def test_what_rounds_do_not_do_is_refused(motley):
    for name, word in REFUSED.items():
        error = motley.fails("train", str(SCRIPTS / "train_case.py"), *rounds(), "--run", name, name)
        assert word in error["message"] and "rounds" in error["message"]


def test_a_loss_that_asks_for_the_step_is_not_evaluated_at_a_round(motley):
    error = motley.fails("train", str(SCRIPTS / "wrong.py"), *rounds(), "--run", "run", "by_step")
    assert "a loss that asks for `step`" in error["message"] and "rounds" in error["message"]


def test_a_workers_own_optimizer_that_fails_says_what_becomes_of_the_worker(motley):
    """It is not the head's, whose run would go on from before the step."""
    here = ["--device", "cpu", "--threads", "1", "--listen", "127.0.0.1:0"]
    error = motley.fails("train", str(SCRIPTS / "wrong.py"), *here, *rounds(), "--run", "run", "breaking")
    assert "the optimizer of the script failed" in error["message"] and "broke" in error["message"]
    assert "this worker" in error["try"] and "--resume" not in error["try"]


def test_a_run_goes_on_in_its_mode_alone(motley):
    script = str(SCRIPTS / "train_case.py")
    here = ["--run", "run", "--device", "cpu", "--threads", "1", "--listen", "127.0.0.1:0"]
    head = motley.start("train", script, *here, *rounds(), "wide")
    head.wait_event("eval")
    head.kill()
    error = motley.fails("train", script, "--resume", *here, "wide", status=1)
    assert "train.mode" in error["message"] and "train.mode=rounds" in error["try"]
    head = motley.start("train", script, "--resume", *here, *rounds(), "wide")
    assert head.end() == 0, head.story()
    assert motley.audit("run")["samples"] == cases.make("wide").epochs * cases.SIZE


def test_an_export_has_no_optimizer_that_was_not_the_scripts(motley):
    train(motley, "train_case.py", "groups", options=rounds())
    assert motley.run("export", "run", "out.pt").process.returncode == 0
    content = torch.load(motley.directory / "out.pt", weights_only=True)
    assert content["step"] == cases.make("groups").epochs * PER_EPOCH
    assert content["optimizer"]["state"] == {} and json.dumps(sorted(content)) == '["model", "optimizer", "step"]'
