"""The tree follows its rules (tools/check_tree.py), and each rule can fail."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_tree", ROOT / "tools/check_tree.py")
check_tree = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_tree)


def test_tree():
    assert check_tree.check(ROOT) == []


def test_arrows_have_no_cycle():
    for folder, used in check_tree.ARROWS.items():
        for other in used:
            assert folder not in check_tree.closure(other)


@pytest.mark.parametrize("path, text, finding", [
    ("src/wire/a.cpp", '#include "fleet/token.h"\n', "wire includes fleet"),
    ("src/engine/a.h", '#include "runtime/train.h"\n', "engine includes runtime"),
    ("src/cluster/a.h", '#include "ps/server.h"\n', "cluster includes ps"),
    ("src/transport/a.h", '#include "fleet/token.h"\n', "transport includes fleet"),
    ("src/runtime/a.h", '#include "softmax/softmax.h"\n', "runtime includes softmax"),
    ("sim/lib/a.h", '#include "transport/connection.h"\n', "sim includes transport"),
    ("src/ps/CMakeLists.txt", "motley_library(ps DEPENDS codec cluster)\n", "ps links cluster"),
    ("src/modes/local/a.h", '#include "modes/exact/grants.h"\n', "a mode knows no other"),
    ("src/modes/rounds/a.h", '#include "modes/exact/grants.h"\n', "a mode knows no other"),
    ("src/modes/work/a.h", '#include "modes/exact/grants.h"\n', "what modes share"),
    ("src/modes/exact/a.h", '#include "modes/local/local_mode.h"\n', "a mode knows no other"),
    ("src/engine/head/a.h", '#include "engine/worker/worker.h"\n', "of workers it knows"),
    ("src/engine/worker/a.h", '#include "engine/head/coordinator.h"\n', "frames reach"),
    ("src/engine/local/a.h", '#include "engine/worker/worker.h"\n', "neither end"),
    ("src/fleet/a.h", '#include "modes/run.h"\n', "fleet includes modes"),
    ("src/ps/a.cpp", '#include "machine/spare_memory.h"\n', "no clock, thread"),
    ("src/fancy/a.h", "\n", "folder that ARROWS"),
    ("python/motley/_samples/a.py", "from motley._runs import _head\n", "_samples imports _runs"),
    ("python/motley/_samples/a.py", "def f():\n    from motley._runs._head import Head\n", "_samples imports _runs"),
    ("python/motley/_samples/a.py", "from motley import _command\n", "_samples imports _command"),
    ("python/motley/_samples/a.py", "import motley\n", "_samples imports __init__"),
    ("python/motley/_launch.py", "import motley._machines._system\n", "_launch imports _machines"),
    ("python/motley/_samples/a.py", "from ._b import c\n", "knows, found ."),
    ("python/motley/_fancy/a.py", "from motley import _core\n", "room that PYTHON_LAYERS"),
    ("src/cluster/a.cpp", "#include <thread>\n", "no clock, thread"),
    ("src/engine/a.cpp", "auto t = std::chrono::steady_clock::now();\n", "no clock, thread"),
    ("src/plan/a.cpp", "#include <fstream>\n", "no clock, thread"),
    ("tests/unit/a.cpp", "std::shuffle(a, b, c);\n", "std::shuffle"),
    ("src/data/a.cpp", "std::uniform_int_distribution<int> d;\n", "_distribution"),
    ("src/runtime/a.cpp", "#include <torch/torch.h>\n", "torch is included"),
    ("include/motley/a.h", '#include "base/hex.h"\n', "found \"base/hex.h\""),
    ("include/motley/a.h", "#include <nlohmann/json.hpp>\n", "found <nlohmann/json.hpp>"),
    ("src/runtime/a.cpp", "#include <asio.hpp>\n", "Asio and OpenSSL"),
    ("src/cluster/a.cpp", "#include <openssl/ssl.h>\n", "Asio and OpenSSL"),
    ("src/data/a.cpp", "\n" * 401, "at most 400 lines"),
    ("src/data/a.cpp", "/" * 121 + "\n", "at most 120 columns"),
    ("tools/a.py", "#" * 141 + "\n", "at most 140 columns"),
    ("docs/a.md", "# One\n\n# Two\n", "found 2"),
    ("docs/a.md", "text\n```\n# a comment\n```\n", "found 0"),
    ("docs/a.md", "# One\n\n/home/somebody/motley\n", "home directory"),
])
def test_rule_can_fail(tmp_path, path, text, finding):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    findings = check_tree.check(tmp_path)
    assert len(findings) == 1 and finding in findings[0], findings


@pytest.mark.parametrize("path, text", [
    ("src/runtime/a.cpp", '#include <thread>\n#include "base/time.h"\n#include "engine/worker/worker.h"\n'),
    ("src/transport/tcp/a.cpp", '#include <asio.hpp>\n#include "wire/frame.h"\n'),
    ("examples/cpp/a.cpp", "#include <torch/torch.h>\n"),
    ("python/motley/_samples/a.py", "import torch\nfrom motley import _core, _numbers\nfrom motley._samples._b import c\n"),
    ("docs/a.md", "# One\n\n```\n# a comment\n```\n"),
])
def test_what_is_allowed(tmp_path, path, text):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert check_tree.check(tmp_path) == []
