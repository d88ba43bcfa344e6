"""What a liar (liar.py) does with a lease."""

import wire
from liar import whole


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
