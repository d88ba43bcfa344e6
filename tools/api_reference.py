#!/usr/bin/env python3
"""Writes the reference of the Python package from its docstrings.

  tools/api_reference.py [--check]     writes docs/reference/python.md; with --check says whether it is what it would write

Reads the sources and imports nothing of them, so it needs neither torch nor a built package. What scripts should not call begins its
docstring with "For the package:". Attributes are told by the string that follows them, in the class or in __init__.
"""

import ast
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python/motley"
PAGE = ROOT / "docs/reference/python.md"
MODULES = ("motley", "motley.lightning", "motley.hf", "motley.ray", "motley.dask")
# What scripts meet without importing it.
MORE = {"motley": [("motley._runs._leases", "Lease"), ("motley._runs._arrays", "Computation")]}
HEAD = """# The Python package

Made from the docstrings by `make docs`. How to use it: [the guide](../guides/python.md), [scripts](../guides/scripts.md).
"""
OURS = "For the package:"
# "model: a module", "loss(model, batch): the mean", "number, epoch: from 1 on"
ENTRY = re.compile(r"^([A-Za-z_]\w*(?:, [a-z_]\w*)*(?:\([^)]*\))?): (?=\S)")
INLINE = re.compile(r"  (?=[a-z_]\w*(?:, [a-z_]\w*)*(?:\([^)]*\))?: )")


def file_of(module):
    parts = module.split(".")[1:]
    folder = PACKAGE.joinpath(*parts)
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def tree_of(module):
    return ast.parse(file_of(module).read_text(encoding="utf-8"))


def exported(module):
    """(module that defines it, name) of each name in __all__."""
    tree, homes, names = tree_of(module), {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            homes.update({alias.asname or alias.name: node.module for alias in node.names})
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names = ast.literal_eval(node.value)
    return [(homes.get(name, module), name) for name in names] + MORE.get(module, [])


def paragraphs(text):
    """A docstring as Markdown: entries become a list, indented code stays."""
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if all(line.startswith("    ") for line in lines):
            yield "```python\n" + "\n".join(line[4:] for line in lines) + "\n```"
            continue
        items = []
        for line in lines:
            for number, part in enumerate(INLINE.split(line.strip())):
                if ENTRY.match(part) and (number > 0 or not line.startswith(" ")) and not part.startswith("Errors: "):
                    items.append(ENTRY.sub(r"- `\1`: ", part))
                elif items:
                    items[-1] += " " + part
                else:
                    items.append(part)
        yield "\n".join(items)


def documented(node):
    return list(paragraphs(ast.get_docstring(node) or ""))


def signature(node, name):
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^self(, )?(/, )?", "", arguments)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None and node.name != "__init__" else ""
    line = f"{name}({arguments}){returns}"
    if len(line) > 100:
        inner = ",\n".join("    " + part for part in split_arguments(arguments))
        line = f"{name}(\n{inner},\n){returns}"
    return f"```python\n{line}\n```"


def split_arguments(text):
    """At the commas that stand in no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def about_function(node, name, level):
    heading = "#" * level + f" `{name}`"
    if any(getattr(decorator, "id", "") == "property" for decorator in node.decorator_list):
        return [heading, *documented(node)]
    return [heading, signature(node, name.split(".", 1)[-1] if level > 3 else name), *documented(node)]


def attributes(body):
    """(name, what is said of it) of each that a string follows."""
    for item, after in zip(body, body[1:]):
        if isinstance(item, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield getattr(item.target, "attr", None) or item.target.id, inspect.cleandoc(after.value.value)


def about_class(node, name):
    lines = [f"### `{name}`"]
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    made = next((item for item in methods if item.name == "__init__"), None)
    # What the package makes itself has arguments that concern nobody.
    if made is not None and not any(word in ast.unparse(made.args) for word in ("happening", "_core", "_kept")):
        lines.append(signature(made, name))
    lines += documented(node)
    short = name.rsplit(".", 1)[-1]
    for attribute, told in attributes(node.body + (made.body if made is not None else [])):
        lines += [f"#### `{short}.{attribute}`", *paragraphs(told)]
    for item in methods:
        if not item.name.startswith("_") and not (ast.get_docstring(item) or OURS).startswith(OURS):
            lines += about_function(item, f"{short}.{item.name}", 4)
    return lines


def named(tree, name):
    for item in tree.body:
        target = item.targets[0] if isinstance(item, ast.Assign) else None
        overloads = any(getattr(decorator, "id", "") == "overload" for decorator in getattr(item, "decorator_list", []))
        if name in (getattr(item, "name", ""), getattr(target, "id", "")) and not overloads:
            return item
    raise SystemExit(f"expected {name} in the module that exports it, found nothing of that name")


def about(node, name):
    if isinstance(node, ast.ClassDef):
        return about_class(node, name)
    if isinstance(node, ast.Assign):
        return [f"### `{name}`", f"`{ast.unparse(node.value)}`"]
    return about_function(node, name, 3)


def page():
    blocks = [HEAD.rstrip()]
    for module in MODULES:
        blocks += [f"## `{module}`", *documented(tree_of(module))]
        for home, name in exported(module):
            blocks += about(named(tree_of(home), name), f"{module}.{name}")
    return "\n\n".join(blocks) + "\n"


def main():
    text = page()
    if "--check" in sys.argv[1:]:
        fresh = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print("the reference is fresh" if fresh else f"expected {PAGE.relative_to(ROOT)} as the docstrings are; `make docs` writes it")
        return 0 if fresh else 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
