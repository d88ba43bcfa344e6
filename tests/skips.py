"""Tests that are skipped for a reason that expected_skips.txt does not have: nobody is to lose them without a word.

    python tests/skips.py JUNIT.xml     what ctest has written; prints one line a test; exit status 1 if there is any

tests/conftest.py asks for those of pytest.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree

LIST = pathlib.Path(__file__).with_name("expected_skips.txt")


def expected(reason):
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return reason.startswith(tuple(line for line in lines if line and not line.startswith("#")))


def unexpected(skipped):
    """skipped: (test, reason) of each. What to print."""
    return [f"{test} was skipped: {reason}; expected one of the reasons in tests/{LIST.name}"
            for test, reason in skipped if not expected(reason)]


def of_ctest(written):
    """(test, reason) of what GoogleTest skipped, from the file of `ctest --output-junit`."""
    for case in xml.etree.ElementTree.fromstring(written).iter("testcase"):
        if case.find("skipped") is not None:
            reason = re.search(r": Skipped\n(.*)", case.findtext("system-out", ""))
            yield case.get("name"), reason[1] if reason else "it says no reason"


if __name__ == "__main__":
    found = unexpected(of_ctest(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")))
    print("\n".join(found), end="\n" * bool(found))
    sys.exit(bool(found))
