#!/usr/bin/env python3
"""Rules of the tree that no compiler knows: arrows between folders, purity, sizes, and what documents may say.

  tools/check_tree.py [ROOT]      prints one line a finding; exit status 1 if there is any

The build enforces the arrows too (each folder sees only what it links); this also keeps the links themselves in order.
"""

import ast
import pathlib
import re
import sys

# What a folder may use directly; what those use comes with them. ARCHITECTURE.md draws it.
ARROWS = {
    "base": [],
    "machine": ["base"],
    "tensor": ["base"],
    "codec": ["base"],
    "wire": ["codec"],
    "blocks": ["wire"],
    "fleet": ["base"],
    "modes": ["fleet"],
    "cluster": ["wire", "modes"],
    "plan": ["codec"],
    "compute": ["tensor"],
    "ps": ["tensor", "codec"],
    "data": ["base"],
    "report": ["base"],
    "store": ["tensor", "wire", "data"],
    "transport": ["wire"],
    "engine": ["cluster", "compute", "plan", "ps"],
    "config": ["ps"],
    "runtime": ["machine", "engine", "blocks", "config", "data", "store", "report", "transport"],
    "softmax": ["data"],
    "sim": ["engine", "data", "softmax"],
    "bench": ["runtime"],
    "api": ["runtime"],
    "cli": ["bench", "softmax"],
    "python": ["runtime", "cli"],
}
# What a folder uses without handing it on.
PRIVATE_ARROWS = {"codec": ["machine"], "ps": ["machine"]}
# Rooms within a folder: what a file there may not include, and why.
ROOMS = {
    "src/modes/work/": (re.compile(r'#include "(modes/(?:exact|local|rounds)/[^"]+)"'), "what modes share knows none of them"),
    "src/modes/exact/": (re.compile(r'#include "(modes/(?:local|rounds)/[^"]+)"'), "a mode knows no other"),
    "src/modes/local/": (re.compile(r'#include "(modes/(?:exact|rounds)/[^"]+)"'), "a mode knows no other"),
    "src/modes/rounds/": (re.compile(r'#include "(modes/(?:exact|local)/[^"]+)"'), "a mode knows no other"),
    "src/engine/head/": (re.compile(r'#include "(engine/(?:worker/|local/(?!delegated_steps\.h))[^"]*)"'),
                         "of workers it knows what it delegates"),
    "src/engine/worker/": (re.compile(r'#include "(engine/(?:head/|local/(?!local_worker\.h))[^"]*)"'), "frames reach the head"),
    "src/engine/local/": (re.compile(r'#include "(engine/(?:head|worker)/[^"]+)"'), "steps on a device need neither end of a session"),
}
# The rooms of the Python package, lowest first: each may import those before it. ARCHITECTURE.md names them, too.
PYTHON = "python/motley/"
PYTHON_LAYERS = ["_core", "_errors", "_numbers", "_launch", "_state", "_machines", "_content", "_models", "_samples", "_trials",
                 "_optimizers", "_computing", "_runs", "__init__", "recipes", "hf", "lightning", "dask", "ray", "_command", "__main__"]
PURE = ["src/blocks/", "src/fleet/", "src/modes/", "src/cluster/", "src/plan/", "src/compute/", "src/ps/", "src/engine/"]
LINES_MAX = 400
COLUMNS_MAX = {".cpp": 120, ".h": 120, ".py": 140, ".sh": 140}
SKIPPED = {"build", "runs", ".git", ".pytest_cache", "__pycache__", "data", "corpus"}
CODE = {".cpp", ".h"}
SCRIPTS = {".py", ".sh"}

IMPURE = re.compile(
    r"#include <(thread|mutex|shared_mutex|condition_variable|future|stop_token|fstream|iostream|filesystem|random|ctime|unistd\.h"
    r"|fcntl\.h|pthread\.h|time\.h|sys/[a-z_]+\.h|netinet/[a-z_]+\.h)>"
    r'|#include "machine/(?!instruction_set)[^"]+"'
    r"|\b(steady_clock|system_clock|high_resolution_clock|random_device|getenv|fopen|gettimeofday|clock_gettime)\b")
RANDOM = re.compile(r"\bstd::(ranges::)?(shuffle|sample|random_shuffle)\b|\bstd::[a-z_]+_distribution\b")
TORCH = re.compile(r"#include <(torch|ATen|c10|caffe2)/")
NETWORK = re.compile(r"#include [<\"](asio|boost/asio|openssl)[/.]")
PRIVATE_INCLUDE = re.compile(r'^#include (?!<[a-z_]+>|"motley/)(.+)', re.MULTILINE)
HOME = re.compile(r"(?<![\w.])/(home/(?!me/)|Users/)[A-Za-z]|(?<![\w.])/root/")
INCLUDE = re.compile(r'^\s*#include "([a-z_]+)/', re.MULTILINE)


def without_comments(text):
    return re.sub(r"//.*", "", text)


def closure(folder):
    """Every folder that `folder` may include, itself among them."""
    seen, todo = set(), [folder]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += ARROWS[name]
    return seen


def folder_of(path):
    """The name under which ARROWS knows the folder of a file; None for tests, benchmarks and the like."""
    parts = path.split("/")
    if parts[0] in ("src", "adapters") and len(parts) > 2:
        return parts[1]
    return {"sim": "sim", "apps": "cli", "python": "python"}.get(parts[0])


def check_arrows(path, text):
    folder = folder_of(path)
    if folder is None:
        return
    if folder not in ARROWS:
        yield f"expected a folder that ARROWS in tools/check_tree.py knows, found {folder}; add it there and to ARCHITECTURE.md"
        return
    allowed = closure(folder).union(PRIVATE_ARROWS.get(folder, []))
    if path.endswith("CMakeLists.txt"):
        for depends in re.findall(r"motley_library\(\s*" + folder + r"\s+DEPENDS\s+([a-z_ ]+)", text):
            for used in depends.split():
                if used not in allowed:
                    yield f"{folder} links {used}, against the arrows"
    elif pathlib.PurePath(path).suffix in CODE:
        for used in INCLUDE.findall(text):
            if used in ARROWS and used not in allowed:
                yield f"{folder} includes {used}, against the arrows"


def check_rooms(path, text):
    for room, (foreign, why) in ROOMS.items():
        if path.startswith(room):
            for used in foreign.findall(text):
                yield f"{room} includes {used}: {why}"


def imported(text):
    """The rooms of the package that a file imports, also within functions; "." where it does so by a relative name."""
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "motley":
            names = [f"motley.{alias.name if alias.name in PYTHON_LAYERS else '__init__'}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["motley.." if node.level else node.module]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "motley":
                yield "." if rest == "." else rest.partition(".")[0] or "__init__"


def check_python_layers(path, text):
    if not path.startswith(PYTHON) or not path.endswith(".py"):
        return
    room = path.removeprefix(PYTHON).split("/")[0].removesuffix(".py")
    for used in imported(text):
        unknown = [each for each in (room, used) if each not in PYTHON_LAYERS]
        if unknown:
            yield f"expected a room that PYTHON_LAYERS in tools/check_tree.py knows, found {unknown[0]}; add it there"
        elif PYTHON_LAYERS.index(used) > PYTHON_LAYERS.index(room):
            yield f"{room} imports {used}, which is in a higher layer"


def check_purity(path, text):
    if path.startswith(tuple(PURE)) and pathlib.PurePath(path).suffix in CODE:
        for found in IMPURE.finditer(without_comments(text)):
            yield f"no clock, thread, file or random device here, found {found.group(0)}; hand it in from src/runtime"


def check_random(path, text):
    if pathlib.PurePath(path).suffix in CODE:
        for found in RANDOM.finditer(without_comments(text)):
            yield f"{found.group(0)} differs between standard libraries; use base/philox.h"


def check_torch(path, text):
    if pathlib.PurePath(path).suffix in CODE and not path.startswith("examples/cpp/") and TORCH.search(text):
        yield "torch is included in examples/cpp only"


def check_public(path, text):
    if path.startswith("include/motley/"):
        for used in PRIVATE_INCLUDE.findall(text):
            yield f"public headers include the standard library and each other, found {used}"


def check_network(path, text):
    allowed = ("src/transport/", "tests/unit/transport/", "tests/conformance/transport/", "bench/blocking_tls")
    if pathlib.PurePath(path).suffix in CODE and not path.startswith(allowed) and NETWORK.search(text):
        yield "Asio and OpenSSL are included in src/transport only"


def check_size(path, text):
    if pathlib.PurePath(path).suffix not in CODE | SCRIPTS:
        return
    lines, columns_max = text.splitlines(), COLUMNS_MAX[pathlib.PurePath(path).suffix]
    if len(lines) > LINES_MAX:
        yield f"expected at most {LINES_MAX} lines, found {len(lines)}; split it by concept"
    for number, line in enumerate(lines, 1):
        if len(line) > columns_max:
            yield f"expected at most {columns_max} columns, found {len(line)} in line {number}"


def check_documents(path, text):
    if not path.endswith(".md"):
        return
    prose = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    titles = len(re.findall(r"^# ", prose, flags=re.MULTILINE))
    if titles != 1:
        yield f"expected exactly one title (# …), found {titles}"


def check_paths(path, text):
    if path in ("tools/check_tree.py", "tests/conformance/test_tree.py"):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if HOME.search(line):
            yield f"a path of somebody's home directory in line {number}"


RULES = [check_arrows, check_rooms, check_python_layers, check_purity, check_random, check_torch, check_public, check_network, check_size,
         check_documents, check_paths]


def files_of(root):
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        # `data` is test data under tests/, but a folder of the core under src/.
        skipped = SKIPPED - {"data"} if parts[0] == "src" else SKIPPED
        hidden = len(parts) > 1 and parts[0].startswith(".") and parts[0] != ".ci"
        if hidden or any(part in skipped or part.startswith("build-") for part in parts):
            continue
        if not path.is_file() or path.is_symlink():
            continue
        if path.suffix in CODE | SCRIPTS | {".md", ".txt", ".cmake", ".json", ".toml", ".yml", ".proto"} or not path.suffix:
            yield path


def check(root):
    """All findings in the tree below `root`, as "file: what is wrong"."""
    findings = []
    for path in files_of(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        name = path.relative_to(root).as_posix()
        for rule in RULES:
            findings += [f"{name}: {finding}" for finding in rule(name, text)]
    return findings


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    findings = check(root)
    print("\n".join(findings) if findings else "the tree follows its rules")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
