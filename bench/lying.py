#!/usr/bin/env python3
"""A worker that lies, for lab_chaos.py, on its own host: MOTLEY LIE NAME TOKEN_FILE FEATURES CLASSES. Says when it gets leases, and why
it was sent away."""

import json
import pathlib
import subprocess
import sys
import time

import measure

sys.path.insert(0, str(measure.ROOT / "tests/e2e"))
import liar  # noqa: E402
import lies  # noqa: E402
import lying_link  # noqa: E402
import wire  # noqa: E402

BY_LINK = lying_link.LIES


def says(lease):
    print(json.dumps({"lease": lease, "at": time.monotonic()}), flush=True)


def by_itself(token, lie, name, features, classes):
    def answer(worker, grant):
        says(worker.leases)
        getattr(lies, lie)(worker, grant)

    liar.learn_data(token, features, classes)
    with liar.Liar(token, name, answer, features=features, classes=classes) as worker:
        worker.wait()
    print(json.dumps({"bye": worker.bye}), flush=True)


def by_link(motley, token, lie, name):
    """A sound one, whose gradients are changed on their way."""
    with lying_link.LyingLink(token["addresses"][0], token["port"], lie, says) as link:
        through = token | {"addresses": ["127.0.0.1"], "port": link.port}
        command = [motley, "join", wire.token_text(through), "--json", "--device", "cpu", "--threads", "1", "--name", name]
        joined = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(json.dumps({"exit": joined.returncode}), flush=True)


def main():
    motley, lie, name, token_file, features, classes = sys.argv[1:]
    token = wire.parse_token(pathlib.Path(token_file).read_text())
    if lie in BY_LINK:
        by_link(motley, token, lie, name)
    else:
        by_itself(token, lie, name, int(features), int(classes))


if __name__ == "__main__":
    main()
