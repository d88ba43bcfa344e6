"""One of four workers is killed in every round of a long run: what that costs is its own round at the most, and nothing of the others."""

import pytest
from program import arguments, settings

ROUNDS, KILLS = 60, 50
SAMPLES, LOCAL_STEPS = 10_000, 10  # of a round, which is an epoch
BATCH = SAMPLES // LOCAL_STEPS
NAMES = ("anna", "berta", "carla", "dora")
RUN = [*arguments(samples=SAMPLES, features=4096, classes=60, test=0, lr=0.001),
       *settings(train_seed=5, train_verify=0, train_global_batch=BATCH, train_epochs=ROUNDS, train_min_workers=4, train_shares="[1,1,1,1]",
                 train_mode="rounds")]


def contributors(event):
    return {part["worker"].split("/")[0] for part in event["workers"] if part["samples"]}


@pytest.mark.nightly
@pytest.mark.alone
def test_one_of_four_is_killed_in_every_round(motley):
    head = motley.start("train", "softmax", *RUN, "--set", f"train.rounds.steps={LOCAL_STEPS}", "--run", "run", "--device", "none",
                        "--listen", "127.0.0.1:0", "--token-file", "token")

    def join(name):
        return motley.start("join", "--token-file", "token", "--name", name, "--threads", "1")

    guests = {name: join(name) for name in NAMES}
    head.wait_event("step", lambda event: contributors(event) == set(NAMES))
    killed = {}  # who, by the number of rounds that had been told of
    for kill in range(KILLS):
        rounds, name = len(head.named("step")), NAMES[kill % len(NAMES)]
        killed[rounds] = name
        guests[name].kill()
        guests[name] = join(name)
        head.wait_until(lambda rounds=rounds: len(head.named("step")) > rounds, "the end of the round")
    assert head.end() == 0, head.story()
    audit = motley.audit("run")
    assert audit["samples"] == ROUNDS * SAMPLES and audit["missing"] == audit["duplicate"] == audit["owed"] == 0
    told, owed = head.named("step"), 0
    for number, event in enumerate(told[:-1]):
        there = contributors(event)
        gone = {killed[n] for n in (number - 1, number) if n in killed}  # it may have been told of a round a moment late
        total, owed = SAMPLES + owed, owed + SAMPLES - event["samples"]
        lost = len(gone - there)
        assert owed <= lost * total / (len(there) + lost) + BATCH, f"round {number} left {owed} of {total} samples when {gone} was killed"
        if number > 0:
            missing = contributors(told[number - 1]) - there - gone
            assert not missing, f"round {number}: {missing} lost its work when {gone} was killed"
    assert sum(event["samples"] for event in told) == ROUNDS * SAMPLES
    assert sum(name not in contributors(told[number]) for number, name in killed.items()) > KILLS / 2, "most were killed inside of a round"
