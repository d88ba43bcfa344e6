"""A set of files comes from another machine that has it as well (tools/lab).

Needs root, network namespaces and tc; skipped where they are missing.
"""

import pytest

from program import settings
from test_data import SCRIPT, data, equal, place_of, variables  # noqa: F401
from test_lab import lab, laboratory, on


@pytest.fixture(scope="module")
def network():
    with laboratory({"head": 0.7, "first": 0.6, "second": 0.6}):
        yield


def test_a_set_comes_from_a_machine_that_has_fetched_it(network, motley, data, tmp_path):  # noqa: F811
    """The second one takes no block before the first is a source as well."""
    head = motley.start("train", SCRIPT, "--run", "run", "--listen", f"{lab('ip', 'head')}:7117", "--threads", "1", "--device", "cpu",
                        "--token-file", "token", *settings(train_min_workers=3, train_shares=[1, 1, 1], train_verify=0),
                        prefix=[*on("head"), *variables(motley, "home-head", data)])
    head.wait_event("run")
    joined = [motley.start("join", "--token-file", "token", SCRIPT, "--threads", "1", "--device", "cpu", "--name", name,
                           prefix=[*on(name), *variables(motley, f"home-{name}", tmp_path / "nowhere"), f"MEDDLE={meddle}"])
              for name, meddle in (("first", ""), ("second", "others"))]
    assert head.end() == 0, head.story()
    for each in joined:
        assert each.end() == 0, each.story()
        assert equal(data, type(data)(place_of(each)))
    said = next(line for line in joined[1].text if "is here" in line)
    assert "from other machines" in said, joined[1].story()
    motley.audit("run")
