"""The list of components (tools/sbom.py) has everything that the program is built with, and everything that is installed for it."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("sbom", ROOT / "tools/sbom.py")
sbom = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(sbom)


def test_has_what_cmake_looks_for():
    """Whoever adds a library to the program adds it to the list."""
    text = (ROOT / "cmake/MotleyDependencies.cmake").read_text().split("if(MOTLEY_BUILD_TESTS)")[0]
    wanted = set(re.findall(r"^ *find_package\((\w+)", text, re.MULTILINE))
    wanted |= {name.lower() for name in re.findall(r"^find_path\(MOTLEY_(\w+)_INCLUDE", text, re.MULTILINE)}
    assert wanted == set(sbom.LINKED)


def test_names_the_packages_that_are_installed_for_it():
    bootstrap = (ROOT / "tools/bootstrap").read_text()
    debian = set(re.search(r'apt_demo="([^"]+)"', bootstrap)[1].split())
    brew = set(re.search(r'brew_demo="([^"]+)"', bootstrap)[1].split())
    assert {package for package, _ in sbom.LINKED.values()} == {package for package in debian if package.endswith("-dev")} - {"python3-dev"}
    assert {package for _, package in sbom.LINKED.values()} <= brew


def test_has_every_locked_package_with_its_hashes():
    lock = (ROOT / "tools/requirements.lock").read_text()
    listed = {component["purl"]: component for component in sbom.bill(ROOT)["components"]}
    assert len(listed) == len(sbom.bill(ROOT)["components"])
    names = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", lock, re.MULTILINE)
    assert len(names) > 40
    for name, version in names:
        component = listed[f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"]
        assert component["version"] == version and component["hashes"], name
    assert sum(len(component.get("hashes", [])) for component in listed.values()) == lock.count("--hash=sha256:")


def test_is_cyclonedx_and_the_same_each_time():
    first, second = (subprocess.run([sys.executable, ROOT / "tools/sbom.py"], capture_output=True, text=True, check=True).stdout
                     for _ in range(2))
    assert first == second
    document = json.loads(first)
    assert document["bomFormat"] == "CycloneDX" and document["specVersion"] == "1.6" and document["version"] == 1
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", document["serialNumber"])
    for component in document["components"]:
        assert component["type"] == "library" and component["scope"] in ("required", "excluded") and component["name"], component
        assert component["bom-ref"] == component["purl"]
    known = {component["bom-ref"] for component in document["components"]}
    assert set(document["dependencies"][0]["dependsOn"]) <= known
