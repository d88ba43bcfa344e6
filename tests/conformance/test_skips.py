"""What is skipped for a reason that nobody expects is found (tests/skips.py)."""

import subprocess
import sys

import pytest
import skips

CASE = '<testcase name="{}"><skipped message="as told"/><system-out>a_test.cpp:7: Skipped\n{}\n</system-out></testcase>'
WRITTEN = "<testsuite>" + CASE.format("A.b", "needs root, to be another user") + CASE.format("A.c", "was too slow") + "</testsuite>"


def test_of_ctest():
    assert list(skips.of_ctest(WRITTEN)) == [("A.b", "needs root, to be another user"), ("A.c", "was too slow")]
    found = skips.unexpected(skips.of_ctest(WRITTEN))
    assert len(found) == 1 and found[0].startswith("A.c was skipped: was too slow")


@pytest.mark.parametrize("reason, status", [("needs root", 0), ("was too slow", 1)])
@pytest.mark.parametrize("skipped", ["def test_a():\n    pytest.skip({!r})\n", "pytest.skip({!r}, allow_module_level=True)\n"],
                         ids=["a test", "a file"])
def test_of_pytest(tmp_path, skipped, reason, status):
    (tmp_path / "test_a.py").write_text(f"import pytest\n{skipped.format(reason)}\ndef test_b():\n    pass\n")
    (tmp_path / "test_b.py").write_text("def test_c():\n    pass\n")
    for name in ("conftest.py", "skips.py", "expected_skips.txt"):
        (tmp_path / name).write_text(skips.LIST.with_name(name).read_text())
    command = [sys.executable, "-m", "pytest", "-q", "--expected-skips", tmp_path]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status and (reason in done.stdout) == bool(status), done.stdout + done.stderr
