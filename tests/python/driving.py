"""Drives what computes as the core's task loop does (src/compute/task_loop.cpp), for tests of its arithmetic."""


class Failed(Exception):
    """(code, what happened, what to try)."""


def run(computation, task):
    """(count, weight, loss_sum, sums of scores), or what failed."""
    try:
        return _run(computation, task)
    except Failed as failed:
        return failed.args
    finally:
        computation.close()


def _answer(found):
    if isinstance(found, tuple) and len(found) == 3 and isinstance(found[0], str):
        raise Failed(*found)
    return found


def _run(computation, task):
    trains, done, last = task.kind == "train", 0, False
    group = (computation.group or 1) if trains else 1
    most, early = _answer(computation.open(task))
    if trains and (wanted := _limit(task, group)):
        size = _next(task, 0, wanted, group, most)
        most = _answer(computation.read(task.at(0, size), size, wanted))
    came = [] if task.resident else task.bring(0, 0 if early else len(task.flat))
    if early and not came:
        came = task.bring(0, 1)
    if task.abandoned:
        return 0, 0.0, 0.0, []
    _answer(computation.start(came))
    while not last:
        wanted = _limit(task, group)
        if wanted == 0 or wanted <= done:
            break
        size = _next(task, done, wanted, group, most)
        if not task.claim(done + size):
            continue
        found = computation.forward(task.at(done, size), size, wanted)
        if task.abandoned:
            return 0, 0.0, 0.0, []
        computed, most = _answer(found)
        if not computed:
            continue
        done += size
        if trains and computation.flow == "overlapped":
            last = _begins(computation, task, done, group)
        if trains:
            _answer(computation.backward(last and task.contributes and not task.resident))
        if trains and computation.flow == "behind":
            last = _begins(computation, task, done, group)
        if not last:
            task.progress(done)
    if wanted == 0:
        return 0, 0.0, 0.0, []
    weight, loss_sum, scores = _answer(computation.sums())
    if trains:
        if not last:
            task.begin(done, weight, loss_sum)
        _answer(computation.finish(done))
        if task.contributes and not task.resident:
            task.finish()
        if last:
            task.progress(done)
    return done, weight, loss_sum, scores


def _limit(task, group):
    limit = task.limit()
    partial = task.count % group if task.from_end else 0
    if limit == task.count:
        return limit
    return 0 if limit < partial else partial + (limit - partial) // group * group


def _next(task, done, limit, group, most):
    left, whole = limit - done, max(1, most // group)
    partial = task.count % group if task.from_end and done == 0 else 0
    groups = -(-left // group)
    taken = groups % whole if groups > whole and groups % whole else min(whole, groups)
    return partial + (taken - 1) * group if partial else min(taken * group, left)


def _begins(computation, task, done, group):
    if not 0 < _limit(task, group) <= done:
        return False
    weight, loss_sum, _ = _answer(computation.sums())
    task.begin(done, weight, loss_sum)
    return True
