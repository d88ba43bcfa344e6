"""What documents say of the program is what the program has."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_reference_is_what_the_docstrings_say():
    made = subprocess.run([sys.executable, ROOT / "tools/api_reference.py", "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr


def test_troubleshooting_has_every_error_code():
    words = re.findall(r'^      return "([a-z-]+)";', text_of("src/base/result.cpp"), re.MULTILINE)
    sections = re.findall(r"^## ([a-z-]+)$", text_of("docs/troubleshooting.md"), re.MULTILINE)
    assert len(words) > 10 and sections == words


def test_the_index_has_every_guide_and_format():
    index = text_of("docs/README.md")
    for folder in ("guides", "formats", "reference"):
        for page in (ROOT / "docs" / folder).iterdir():
            assert f"({folder}/{page.name})" in index, page


def test_links_between_documents_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:", link):
                assert (page.parent / link).exists(), f"{page.relative_to(ROOT)}: {link}"


def test_files_that_documents_name_are_there():
    named = re.compile(r"`((?:include|src|adapters|apps|sim|python|tests|fuzz|tools|docs|bench)/[\w./-]+)`")
    for page in [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/guides/*.md")]:
        for name in named.findall(page.read_text(encoding="utf-8")):
            assert "NNNN" in name or (ROOT / name).exists(), f"{page.relative_to(ROOT)}: {name}"
