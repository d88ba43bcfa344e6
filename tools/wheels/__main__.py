"""Wheels for every system from one Linux machine.

  tools/wheels [--jobs N] [--test|--emulate|--turn] [TARGET...]      default: all that tools/wheels/targets.py lists

They lie in build/wheels/dist, with their hashes in SHA256SUMS, each after what it asks of its system was checked. What was built once
is built again only where it has changed.
"""

import argparse
import importlib.util
import pathlib
import subprocess
import sys
import time

import checks
import emulated
import native
import package
import sources
import targets
import wine

ROOT = pathlib.Path(__file__).resolve().parents[2]


def default_jobs():
    return int(subprocess.run([ROOT / "tools/jobs"], capture_output=True, text=True, check=True).stdout)


def nanobind_folder():
    found = importlib.util.find_spec("nanobind")
    if found is None:
        raise sources.Failed("expected nanobind in this Python, found none\ntry: make wheels, which sets one up")
    return pathlib.Path(found.origin).parent


def test_target(target, jobs):
    native_build = native.Native(target, ROOT, ROOT / "build/wheels", jobs)
    native_build.dependencies()
    for said in native_build.tests():
        print(f"{target.name}: {said}", flush=True)


def emulate_target(target, jobs):
    build = ROOT / "build/wheels"
    if target.debian:
        print(emulated.install(target, build / target.name / "emulated", build / "dist"), flush=True)
    elif target.system == "Windows":
        native_build = native.Native(target, ROOT, build, jobs)
        native_build.dependencies()
        print(wine.install(native_build, build / "dist"), flush=True)


def build_target(target, jobs):
    began = time.monotonic()
    build = ROOT / "build/wheels"
    native_build = native.Native(target, ROOT, build, jobs)
    native_build.dependencies()
    folder = native_build.extension(nanobind_folder())
    for abi in native_build.abis:
        extension = next((folder / abi.name).glob("_core.*")).read_bytes()
        checks.check_extension(extension, target, str(ROOT))
        wheel = package.pack(ROOT, build, target, abi, extension)
        checks.check_size(wheel)
        print(f"{wheel.relative_to(ROOT)}  {wheel.stat().st_size / 1e6:.2f} MB", flush=True)
    print(f"{target.name}: {time.monotonic() - began:.0f} s", flush=True)


def write_sums(dist):
    wheels = sorted(dist.glob("*.whl"))
    (dist / "SHA256SUMS").write_text("".join(f"{sources.sha256_of(wheel)}  {wheel.name}\n" for wheel in wheels))


def main(arguments):
    names = [target.name for target in targets.TARGETS]
    parser = argparse.ArgumentParser(prog="tools/wheels", description="Builds wheels for other systems.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--jobs", type=int, default=0, help="compilers at once; default: what this machine can do")
    parser.add_argument("--test", action="store_true", help="builds C++ tests instead, and runs them where something here can")
    parser.add_argument("--emulate", action="store_true", help="installs wheels beside a Python of their kind; says what runs them")
    parser.add_argument("--turn", action="store_true", help="says for which targets wheels are built with this commit, where not for all")
    asked = parser.parse_args(arguments)
    if asked.turn:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        print(*targets.in_turn(done.stdout.strip()))
        return 0
    if unknown := set(asked.targets) - set(names):
        parser.error(f"expected targets of {', '.join(names)}; found {', '.join(sorted(unknown))}")
    try:
        for target in targets.TARGETS:
            if target.name in asked.targets or not asked.targets:
                todo = test_target if asked.test else emulate_target if asked.emulate else build_target
                todo(target, asked.jobs or default_jobs())
    except sources.Failed as failure:
        print(f"wheels: {failure}", file=sys.stderr)
        return 1
    if not asked.test and not asked.emulate:
        write_sums(ROOT / "build/wheels/dist")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
