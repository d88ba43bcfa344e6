"""For all suites: `--expected-skips` fails the run where a test is skipped for a reason that expected_skips.txt does not have."""

import pytest
import skips

skipped = []  # (test, reason)


def pytest_addoption(parser):
    parser.addoption("--expected-skips", action="store_true", help="fail where a test is skipped that is not expected to be")


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        skipped.append((report.nodeid, report.longrepr[2].removeprefix("Skipped: ")))


pytest_collectreport = pytest_runtest_logreport  # of a whole file


def pytest_sessionfinish(session):
    if session.config.getoption("--expected-skips") and skips.unexpected(skipped) and not hasattr(session.config, "workerinput"):
        session.exitstatus = max(session.exitstatus, pytest.ExitCode.TESTS_FAILED)


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--expected-skips"):
        for line in skips.unexpected(skipped):
            terminalreporter.write_line(line, red=True)
