"""Parity tests: the program against plain PyTorch loops. `pytest tests/parity --motley build/dev/motley` chooses the program."""

from pathlib import Path

import pytest
import torch

import plain
from program import Program

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption("--motley", default="build/motley", help="the program; relative to the root of the repository")


def pytest_configure(config):
    # The workers run with one thread each, and kernels sum in another order with another number of threads.
    torch.set_num_threads(1)


def pytest_terminal_summary(terminalreporter):
    # What tests have noted, in whichever process they ran.
    reports = [report for reports in terminalreporter.stats.values() for report in reports if getattr(report, "when", None) == "call"]
    measured = [value for report in reports for name, value in report.user_properties if name == "measured"]
    if not measured:
        return
    terminalreporter.section("worst relative differences from the plain loop")
    for name, found, limit in measured:
        terminalreporter.write_line(f"{name:<75} {found:9.2e}  (at most {limit:.0e})")


@pytest.fixture(scope="session")
def motley(pytestconfig):
    path = ROOT / pytestconfig.getoption("--motley")
    if not path.is_file():
        pytest.fail(f"{path}: expected the program there, found nothing; build it, or name it with --motley", pytrace=False)
    return Program(path)


@pytest.fixture(scope="session")
def fashion():
    """Fashion-MNIST as tensors, read straight from its files: {"train": (x, y), "test": (x, y)}."""
    return plain.load_idx(plain.find_fashion())


@pytest.fixture(scope="session")
def small_fashion(fashion, tmp_path_factory):
    """A directory of uncompressed IDX files, quick to open, with a short last batch: 1,000 and 500 samples."""
    directory = tmp_path_factory.mktemp("small-fashion")
    plain.write_idx(plain.find_fashion(), directory, {"train": 1000, "test": 500})
    return directory


@pytest.fixture
def measure(request):
    """measure(what, found, limit): notes the worst difference for the summary and refuses one above the limit."""

    def note(what, found, limit):
        name = f"{request.node.name} {what}".strip()
        request.node.user_properties.append(("measured", [name, float(found), limit]))
        assert found <= limit, f"{name}: expected at most {limit}, found {found}"

    return note
