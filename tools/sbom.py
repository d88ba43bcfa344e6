#!/usr/bin/env python3
"""What Motley is made of, as a CycloneDX list of components (an SBOM) on standard output.

  tools/sbom.py [ROOT] >motley.cdx.json

The Python packages are those of tools/requirements.lock, with their hashes; the libraries are those that the program is built
with, in the version that this machine has. The same tree on the same machine gives the same bytes: no time, no random number.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import uuid

# What CMake looks for, and the packages it comes from: of Debian and of Homebrew.
LINKED = {
    "OpenSSL": ("libssl-dev", "openssl@3"),
    "CLI11": ("libcli11-dev", "cli11"),
    "tomlplusplus": ("libtomlplusplus-dev", "tomlplusplus"),
    "nlohmann_json": ("nlohmann-json3-dev", "nlohmann-json"),
    "asio": ("libasio-dev", "asio"),
    "protozero": ("libprotozero-dev", "protozero"),
}
NAMESPACE = uuid.UUID("8d3b7a0e-5a58-4a6e-9c0c-3b1f6f0c2a51")  # of serial numbers, so that equal contents have equal ones


def output_of(*command):
    """What a program prints; nothing where it is not installed or knows of nothing."""
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def distribution(os_release=pathlib.Path("/etc/os-release")):
    match = re.search(r'^ID="?([a-z0-9._-]+)', os_release.read_text(), re.MULTILINE) if os_release.exists() else None
    return match[1] if match else "debian"


def library(name, debian, brew):
    component = {"type": "library", "name": name, "scope": "required"}
    installed = output_of("dpkg-query", "-W", "-f", "${Version}", debian)
    if installed:
        return component | {"version": installed, "purl": f"pkg:deb/{distribution()}/{debian}@{installed}"}
    listed = output_of("brew", "list", "--versions", brew).split()
    if len(listed) > 1:
        return component | {"version": listed[-1], "purl": f"pkg:brew/{brew}@{listed[-1]}"}
    return component | {"purl": f"pkg:deb/{distribution()}/{debian}"}  # whoever builds elsewhere has a version of it


def python_package(name, version, hashes, scope):
    name = re.sub(r"[-_.]+", "-", name).lower()
    component = {"type": "library", "name": name, "version": version, "scope": scope, "purl": f"pkg:pypi/{name}@{version}"}
    return component | {"hashes": [{"alg": "SHA-256", "content": value} for value in hashes]} if hashes else component


def python_packages(tools):
    torch = re.search(r"^torch==(\S+)", (tools / "requirements.txt").read_text(), re.MULTILINE)
    found = [python_package("torch", torch[1], [], "required")]
    for block in re.split(r"\n(?=[A-Za-z])", (tools / "requirements.lock").read_text().strip()):
        name, version = re.match(r"([A-Za-z0-9._-]+)==(\S+)", block).groups()
        scope = "required" if name == "nanobind" else "excluded"  # the others build, test and measure; none is part of the program
        found.append(python_package(name, version, re.findall(r"--hash=sha256:([0-9a-f]{64})", block), scope))
    return found


def bill(root):
    version = re.search(r"^project\(motley VERSION (\S+)", (root / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    components = [library(name, *packages) for name, packages in LINKED.items()] + python_packages(root / "tools")
    components.sort(key=lambda component: component["purl"])
    for component in components:
        component["bom-ref"] = component["purl"]
    content = {
        "metadata": {"component": {"type": "application", "name": "motley", "version": version, "bom-ref": "motley",
                                   "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
        "dependencies": [{"ref": "motley", "dependsOn": [c["bom-ref"] for c in components if c["scope"] == "required"]}],
    }
    return sealed(content)


def sealed(content):
    """A whole document: equal contents have equal serial numbers."""
    serial = uuid.uuid5(NAMESPACE, json.dumps(content, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1} | content


def text_of(document):
    return json.dumps(document, indent=1) + "\n"


def main(arguments):
    if len(arguments) > 1:
        print("sbom: expected at most the root of the tree; try: tools/sbom.py", file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[1]
    sys.stdout.write(text_of(bill(root)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
