"""Of one script two machines say the same, wherever it lies and however it is laid out: of all examples and scripts of these tests."""

import ast
import json
import sys

import pytest

import programs
from conftest import ROOT, SCRIPTS
from motley._trials import _sources
from program import PATIENCE_S
from test_another_script import by_name, differing, formatted
from test_examples import FASHION, SMALL

SECONDS_MAX = 0.3  # of a processor, at join
CASES = ("groups", "wide", "epochs", "clipped", "tokens", "dropout", "augmented", "counted", "rmsprop", "adagrad", "plateau", "nadam",
         "lookahead")
ADAPTED = ("classifier", "untested", "following", "following_loss", "weights", "causal", "masked", "decoder")
OTHERS = (("own_loop.py", "epochs"), ("several.py", "folds"), ("several.py", "tuned"), ("several.py", "normed"), ("logged.py", "epochs"),
          ("own_kernels.py",), ("printing.py", "break"), ("probed.py", "./alike"), ("sized.py", "attention", "64", "2", "32"),
          ("sockets.py",), ("kept_apart.py",))
STARTED = [("train_program.py", name) for name in programs.names()] + [("train_case.py", name) for name in CASES] + [
    ("adapted.py", name) for name in ADAPTED] + [*OTHERS]
EXAMPLES = {**SMALL, "numpy_softmax": [], "loggers": []}
FILES = sorted([*SCRIPTS.rglob("*.py"), *(ROOT / "examples").rglob("*.py")])


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory):
    """Copies of all scripts under another path, laid out in another way."""
    place = tmp_path_factory.mktemp("elsewhere") / "deeper"
    for path in (*FILES, ROOT / "tests/python/sample_order.py", *(ROOT / "tests/e2e").rglob("*.py")):
        copy = place / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(formatted(path.read_text()))
    return place


def said(motley, out, script, *arguments):
    process = motley.open([sys.executable, str(SCRIPTS / "said.py"), out, str(script), *arguments], None)
    with process.stdout, process.stderr:
        told = process.stderr.read().decode()
    assert process.wait(PATIENCE_S) == 0, told
    return json.loads((motley.directory / out).read_text())


def check(motley, elsewhere, path, *arguments):
    here, there = said(motley, "here", path, *arguments), said(motley, "there", elsewhere / path.relative_to(ROOT), *arguments)
    assert differing(here["words"], there["words"]) == []
    assert len(by_name(here["words"])) >= 3
    assert min(here["seconds"], there["seconds"]) <= SECONDS_MAX


@pytest.mark.parametrize("words", STARTED, ids=" ".join)
def test_a_script_of_the_tests(motley, elsewhere, words):
    check(motley, elsewhere, SCRIPTS / words[0], *words[1:])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example(motley, elsewhere, name):
    if name == "image_cnn" and not FASHION.is_dir():
        pytest.skip("needs Fashion-MNIST")
    check(motley, elsewhere, ROOT / "examples" / f"{name}.py", *EXAMPLES[name])


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, _sources.FUNCTIONS)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_versions_of_python_read_the_same(path):
    """As their grammars have it: 3.10, and from 3.12 on, whose trees have a field more."""
    text = path.read_text()
    now, before, later = (functions(tree) for tree in (ast.parse(text), ast.parse(text, feature_version=(3, 10)), ast.parse(text)))
    for node in later:
        node._fields, node.type_params = tuple(dict.fromkeys((*node._fields, "type_params"))), []
    for nodes in (before, later, functions(ast.parse(formatted(text)))):
        assert [_sources._hash(_sources._normal(node)) for node in nodes] == [_sources._hash(_sources._normal(node)) for node in now]
