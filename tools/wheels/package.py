"""A wheel from the Python files of the tree, an extension, licences and a list of what is in it. The same files give the same bytes."""

import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib
import zipfile

import sources

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import sbom  # noqa: E402: of the folder above

EPOCH_MIN = 315_532_800  # 1980: zip knows nothing before


def epoch(root):
    """Seconds since 1970 that files are dated: SOURCE_DATE_EPOCH, else the last commit's."""
    if (given := os.environ.get("SOURCE_DATE_EPOCH", "")).isdigit():
        return max(int(given), EPOCH_MIN)
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=root, capture_output=True, text=True, check=False)
    return max(int(done.stdout or 0), EPOCH_MIN) if done.returncode == 0 else EPOCH_MIN


def about(root):
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def metadata(root):
    project = about(root)
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}", f"Summary: {project['description']}",
             f"License-Expression: {project['license']}", f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {each}" for each in project["dependencies"]]
    lines += ["Description-Content-Type: text/markdown", "", (root / project["readme"]).read_text()]
    return "\n".join(lines)


def entry_points(root):
    lines = ["[console_scripts]"] + [f"{name} = {where}" for name, where in sorted(about(root)["scripts"].items())]
    return "\n".join(lines) + "\n"


def python_files(root):
    """What belongs to the package, by its path in the wheel."""
    package = root / "python/motley"
    for path in sorted(package.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".pyi", ".typed") and "__pycache__" not in path.parts:
            yield f"motley/{path.relative_to(package).as_posix()}", path.read_bytes()


def licences(root, build):
    yield "LICENSE", (root / "LICENSE").read_bytes()
    yield f"{sources.OPENSSL.name}.txt", (sources.unpack(sources.OPENSSL, build) / sources.OPENSSL.licence_file).read_bytes()
    for package in sorted(set(sources.HEADERS.values())):
        copyright_file = pathlib.Path("/usr/share/doc") / package / "copyright"
        if copyright_file.exists():
            yield f"{package}.txt", copyright_file.read_bytes()


def bill(root, target):
    """What the extension is made of (CycloneDX)."""
    source = sources.OPENSSL
    pinned = {"type": "library", "name": source.name, "version": source.version, "scope": "required",
              "licenses": [{"license": {"id": source.licence}}], "purl": f"pkg:generic/{source.name}@{source.version}",
              "hashes": [{"alg": "SHA-256", "content": source.sha256}]}
    headers = [sbom.library(name, *sbom.LINKED[name]) for name in sbom.LINKED if sbom.LINKED[name][0] in sources.HEADERS.values()]
    locked = (root / "tools/requirements.lock").read_text()
    nanobind = sbom.python_package("nanobind", re.search(r"^nanobind==(\S+)", locked, re.MULTILINE)[1], [], "required")
    name, version, sha256 = re.search(r"^(\w+)==(\S+) --hash=sha256:(\w+)$",
                                      pathlib.Path(__file__).with_name("requirements.txt").read_text(), re.MULTILINE).groups()
    compiler = sbom.python_package(name, version, [sha256], "required")  # its libc++ is linked in
    components = sorted([pinned, *headers, nanobind, compiler], key=lambda component: component["purl"])
    for component in components:
        component["bom-ref"] = component["purl"]
    project = about(root)
    content = {"metadata": {"component": {"type": "application", "name": project["name"], "version": project["version"],
                                          "bom-ref": "motley", "licenses": [{"license": {"id": project["license"]}}],
                                          "properties": [{"name": "motley:platform", "value": target.platform}]}},
               "components": components,
               "dependencies": [{"ref": "motley", "dependsOn": [component["bom-ref"] for component in components]}]}
    return sbom.sealed(content)


class Archive:
    def __init__(self, path, seconds):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.date = time.gmtime(seconds)[:6]
        self.rows = []

    def add(self, name, content, mode=0o644):
        data = content.encode() if isinstance(content, str) else content
        entry = zipfile.ZipInfo(name, self.date)
        entry.external_attr = (0o100000 | mode) << 16
        entry.create_system = 3  # Unix, wherever this runs
        self.zip.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append((name, f"sha256={digest}", len(data)))

    def close(self, record):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*self.rows, (record, "", "")])
        self.add(record, text.getvalue())
        self.zip.close()


def pack(root, build, target, abi, extension):
    """Writes the wheel; returns its path."""
    project = about(root)
    stem = f"{project['name']}-{project['version']}"
    tag = f"{abi.python}-{abi.tag}-{target.platform}"
    path = build / "dist" / f"{stem}-{tag}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    information = f"{stem}.dist-info"
    archive = Archive(path, epoch(root))
    for name, content in python_files(root):
        archive.add(name, content)
    archive.add(f"motley/{abi.module(target)}", extension, 0o755)
    archive.add(f"{information}/METADATA", metadata(root))
    archive.add(f"{information}/WHEEL", f"Wheel-Version: 1.0\nGenerator: motley\nRoot-Is-Purelib: false\nTag: {tag}\n")
    archive.add(f"{information}/entry_points.txt", entry_points(root))
    for name, content in licences(root, build):
        archive.add(f"{information}/licenses/{name}", content)
    archive.add(f"{information}/sboms/motley.cdx.json", sbom.text_of(bill(root, target)))
    archive.close(f"{information}/RECORD")
    return path
