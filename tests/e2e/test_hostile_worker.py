"""A machine that has the token and lies: the run goes on with the others, and its losses are those of an undisturbed one."""

import pytest

import wire
from liar import CLASSES, FEATURES, Liar, whole
from program import settings
from test_strangers import GROWTH_KIB_MAX, Attacked

SHARED = settings(train_shares=[1, 1, 1, 1])
ENOUGH_STEPS = 30  # of others, before anything can be told to be far from them
LEASES_MAX = 20  # that a liar may get


# --- what it does with a lease ---------------------------------------------------------------------------------------------------

def another_weight(liar, grant):
    liar.begin(grant, weight=3.0 * grant[7])


def a_weight_beyond_all(liar, grant):
    liar.begin(grant, weight=1e30)


def a_loss_beyond_all(liar, grant):
    liar.begin(grant, loss=-1e12)
    liar.gradient(grant, 0.0)
    liar.finish(grant, count=grant[7], seconds=0.01)


def no_gradient(liar, grant):
    liar.begin(grant)
    liar.gradient(grant, 0.0)
    liar.finish(grant, count=grant[7], seconds=0.01)


def no_number(liar, grant):
    liar.begin(grant)
    liar.gradient(grant, float("nan"))


def a_gradient_beyond_all(liar, grant):
    liar.begin(grant)
    liar.gradient(grant, 1e30)
    liar.finish(grant, count=grant[7], seconds=0.01)


def handed_back(liar, grant):
    liar.finish(grant, count=0, seconds=0.0)


def nothing(_liar, _grant):
    pass


def positions_that_are_not_there(liar, grant):
    liar.say(wire.BEGIN, ("fixed64", whole(grant[1])), grant[2], 1 << 62, 1 << 62, 1.0, 1.0)


# --- and what comes of it ----------------------------------------------------------------------------------------------------------

def learn_data(attacked):
    """What fits is known to who is turned away for what does not."""
    with wire.Peer(attacked.token) as peer:
        peer.send(wire.hello(attacked.token) + wire.proof(attacked.token))
        layout = wire.layout_entry("weight", (CLASSES, FEATURES)) + wire.layout_entry("bias", (CLASSES,))
        peer.send(wire.control(wire.READY, layout + wire.field(2, "others"), run=attacked.token["run"]))
        (_, bye), = [message for message in peer.closed() if message[0] == wire.BYE]
    attacked.token["train_fingerprint"] = bye[2].decode().removeprefix("training data ")


def attacked_run(motley, *words):
    """A head without a device of its own, and one good worker, which have made some steps."""
    found = Attacked(motley, "--plaintext", *words)
    found.head.wait_step(ENOUGH_STEPS)
    learn_data(found)
    return found


@pytest.fixture
def attacked(motley):
    return attacked_run(motley)


@pytest.fixture
def shared(motley):
    """Whoever joins gets a share, fast or not."""
    return attacked_run(motley, *SHARED)


@pytest.mark.parametrize("lie", [a_weight_beyond_all, a_loss_beyond_all, no_number, a_gradient_beyond_all, handed_back],
                         ids=lambda lie: lie.__name__)
def test_who_answers_wrongly_is_sent_away(shared, lie):
    with Liar(shared.token, "liar", lie) as liar:
        shared.head.wait_event("worker", worker="liar/cpu", change="excluded", parked=False)
        assert 0 < liar.leases <= LEASES_MAX
    shared.check()
    shared.losses_stand()


def test_positions_that_are_not_there_end_the_session(shared):
    with Liar(shared.token, "liar", positions_that_are_not_there):
        lost = shared.head.wait_event("worker", worker="liar/cpu", change="lost")
        assert "positions" in lost["reason"], lost
    shared.check()
    shared.losses_stand()


@pytest.mark.parametrize("lie", [another_weight, nothing], ids=lambda lie: lie.__name__)
def test_who_says_nothing_more_holds_up_nobody(attacked, lie):
    """It beats its heart as if it computed, and claims to be the fastest of all."""
    with Liar(attacked.token, "liar", lie) as liar:
        before = attacked.head.wait_step(ENOUGH_STEPS)
        attacked.head.wait_event("step", lambda e: e["step"] >= before["step"] + 5 * ENOUGH_STEPS)
        assert liar.leases > 0
        assert not attacked.head.named("worker", worker="good/cpu", change="excluded", parked=False)
    attacked.check()
    attacked.losses_stand()


def test_years_of_computing_are_not_believed(attacked):
    with Liar(attacked.token, "liar", nothing, sample_s=1e305):
        before = attacked.head.wait_step(ENOUGH_STEPS)
        attacked.head.wait_event("step", lambda e: e["step"] >= before["step"] + 5 * ENOUGH_STEPS)
    attacked.check()
    attacked.losses_stand()


def test_two_names_of_one_liar_do_not_end_the_run(shared):
    with Liar(shared.token, "liar", no_number), Liar(shared.token, "other", no_number):
        for name in ("liar/cpu", "other/cpu"):
            shared.head.wait_event("worker", worker=name, change="excluded", parked=False)
    shared.check()
    shared.losses_stand()


def test_messages_of_eight_mebibytes_do_not_pile_up(attacked):
    entries = 65000 * wire.layout_entry(100 * "n", (CLASSES, FEATURES))
    assert 7 << 20 < len(entries) < 8 << 20
    with Liar(attacked.token, "liar", nothing) as liar:
        attacked.head.wait_event("worker", worker="liar/cpu", change="joined")
        message = wire.control(wire.READY, entries, run=liar.token["run"], fence=liar.fence)
        for sent in range(60):
            assert liar.send(message), f"closed after {sent}"
            assert attacked.head.rss_kib() - attacked.rss < GROWTH_KIB_MAX
    attacked.check()


def test_a_gradient_of_a_usual_size_that_is_wrong_is_found(motley):
    """By a second look of two others (train.verify), which begins when the speeds are known."""
    attacked = attacked_run(motley, *SHARED, *settings(train_verify=1))
    motley.start("join", "--token-file", "token", "--name", "second")
    attacked.head.wait_step(2 * ENOUGH_STEPS + 5)
    with Liar(attacked.token, "liar", no_gradient):
        attacked.head.wait_event("worker", worker="liar/cpu", change="excluded", parked=False)
    attacked.check()
    assert not attacked.head.named("worker", worker="second/cpu", change="excluded", parked=False)
