"""Options and fixtures of the end-to-end tests: they start the real program and talk to it as any other program would."""

import pathlib

import pytest

import program

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption("--motley", default=str(ROOT / "build" / "motley"), help="the program to test")


@pytest.fixture(scope="session")
def motley_path(request):
    path = pathlib.Path(request.config.getoption("--motley")).resolve()
    if not path.is_file():
        pytest.exit(f"{path}: no program to test; build it, or name one with --motley", returncode=2)
    return str(path)


@pytest.fixture
def motley(motley_path, tmp_path):
    """Starts programs in the test's own directory; whatever still runs when the test ends is killed."""
    with program.Starter(motley_path, tmp_path) as starter:
        yield starter


@pytest.fixture(scope="session", autouse=True)
def cache_of_tests(tmp_path_factory):
    """Programs remember machines, their speeds and their own key in the user's home, which tests leave as it is."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield
