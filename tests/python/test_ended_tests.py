"""What tests and benchmarks leave behind where they are ended themselves, and how soon they notice that a program ended."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from conftest import HERE, ROOT
from processes import await_end
from program import Starter
from together import in_one_run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere programs are not told that the one that started them ended")

PATHS = [str(place) for place in (HERE, HERE.parent / "e2e", ROOT / "bench")]
SLEEPS = "import signal\nsignal.pause()\n"
HAS_STARTED = """
import signal, sys
sys.path[:0] = {paths!r}
{starts}
print(process.pid, flush=True)
signal.pause()
"""
STARTS = {
    "a test's program": "import program; process = program.Starter('', '.').open([sys.executable, 'sleeps.py'], None)",
    "a test's script": "import forks; opened = forks.Forks().__enter__(); process = opened.open(['sleeps.py'], '.')",
    "a benchmark's program": "import measure, pathlib\n"
                             "process = measure.start([sys.executable, 'sleeps.py'], pathlib.Path('there').absolute())[0]",
}


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("kind", STARTS)
def test_programs_end_with_who_started_them(tmp_path, kind, ends):
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    code = HAS_STARTED.format(paths=PATHS, starts=STARTS[kind])
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as starter:
        process = int(starter.stdout.readline())
        starter.send_signal(ends)
    await_end([process])


ASKED_TO_END = """
import sys
sys.path[:0] = {paths!r}
import lab, measure, signal
lab.lab = lambda *words: print(*words, flush=True)
with lab.laboratory({{"one": 0.5, "two": None}}, "1gbit"), measure.Scratch() as scratch:
    print(scratch.path, flush=True)
    signal.pause()
"""


def test_a_benchmark_takes_its_lab_down_when_it_is_asked_to_end():
    words = [sys.executable, "-c", ASKED_TO_END.format(paths=PATHS)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as bench:
        assert bench.stdout.readline() == "up one:cpu=0.5 two --rate 1gbit\n"
        scratch = pathlib.Path(bench.stdout.readline().strip())
        assert scratch.is_dir()
        bench.terminate()
        assert bench.stdout.read() == "down\n"
    assert bench.returncode == 128 + signal.SIGTERM and not scratch.exists()


HEARS_SIGINT = "import signal; print(signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)"


def test_a_benchmarks_programs_can_be_interrupted_where_it_cannot(tmp_path):
    code = f"import sys; sys.path[:0] = {PATHS!r}\nimport measure, pathlib, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" \
           f"started = measure.start([sys.executable, '-c', {HEARS_SIGINT!r}], pathlib.Path({str(tmp_path / 'there')!r}))\n" \
           "measure.finish(started, 60)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "there.out").read_text() == "True\n"


HEAD = f"#!{sys.executable}\nimport signal\nprint({json.dumps({'event': 'run'})!r}, flush=True)\nsignal.pause()\n"
JOINER = f"#!{sys.executable}\nimport sys\nsys.exit('why it ended')\n"


def test_a_joiner_that_ends_is_noticed_at_once(tmp_path):
    starters = []
    for name, text in (("head", HEAD), ("joiner", JOINER)):
        (tmp_path / name).write_text(text)
        os.chmod(tmp_path / name, 0o700)
        starters.append(Starter(str(tmp_path / name), tmp_path))
    with starters[0] as head, starters[1] as joiner, pytest.raises(AssertionError, match="why it ended"):
        in_one_run(head, joiner, "mlp", [])
