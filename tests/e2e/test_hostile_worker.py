"""A machine that has the token and lies: the run goes on with the others, and its losses are those of an undisturbed one."""

import pytest

import wire
from crowd import Crowd
from liar import CLASSES, FEATURES, Liar, learn_data
from lies import (a_gradient_beyond_all, a_loss_beyond_all, a_weight_beyond_all, another_weight, handed_back, no_gradient, no_number,
                  nothing, positions_that_are_not_there)
from program import settings
from test_strangers import GROWTH_KIB_MAX, Attacked

SHARED = settings(train_shares=[1, 1, 1, 1])
ENOUGH_STEPS = 30  # of others, before anything can be told to be far from them
LEASES_MAX = 20  # that a liar may get
FLOODERS = 64
FLOOD_KIB_MAX = FLOODERS * (9 << 10)  # a message of each, on its way
MEMBERS_MAX = 255
MEMBER_KIB_MAX = 256  # two connections with 64 KiB to read into, and what is known of it


def attacked_run(motley, *words):
    """A head without a device of its own, and one good worker, which have made some steps."""
    found = Attacked(motley, "--plaintext", *words)
    found.head.wait_step(ENOUGH_STEPS)
    learn_data(found.token)
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
        while liar.send(wire.control(wire.READY, entries, run=liar.token["run"], fence=liar.fence)):
            assert attacked.head.rss_kib() - attacked.rss < GROWTH_KIB_MAX
        lost = attacked.head.wait_event("worker", worker="liar/cpu", change="lost")
        assert "bytes of control message" in lost["reason"], lost
    attacked.check()


def test_many_that_flood_at_once(attacked):
    """Each sends messages of eight mebibytes, all at the same time."""
    entries = 65000 * wire.layout_entry(100 * "n", (CLASSES, FEATURES))
    with Crowd(attacked.token, FLOODERS, features=FEATURES, classes=CLASSES, flood=entries) as members:
        members.join()
        while members.here():
            members.attend()
            assert attacked.head.rss_kib() - attacked.rss < FLOOD_KIB_MAX
    attacked.rss += FLOOD_KIB_MAX  # what was freed may stay with the process
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


@pytest.mark.parametrize("manner", [{}, {"mute": True}], ids=["measured", "silent"])
def test_as_many_members_as_a_run_has(attacked, manner):
    """Beside the one that computes."""
    with Crowd(attacked.token, MEMBERS_MAX, features=FEATURES, classes=CLASSES, **manner) as members:
        members.join()
        assert members.joined() == MEMBERS_MAX, members.byes()
        before = attacked.head.seen()
        while len(attacked.head.events) < before + ENOUGH_STEPS:
            members.attend()
        assert members.here() == MEMBERS_MAX, members.byes()
        grown = attacked.head.rss_kib() - attacked.rss
        print(f"\n{MEMBERS_MAX} members: {grown} KiB")
        assert grown < MEMBERS_MAX * MEMBER_KIB_MAX
    attacked.check()
