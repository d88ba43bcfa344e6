"""A wheel of a processor that is not this machine's, installed beside a Python of that processor, and the program that runs it."""

import shlex
import shutil
import subprocess
import sys

import sources
import targets

# Of Debian: a Python, and what it needs.
PACKAGES = ["python3", "libstdc++6", "libgomp1", "ca-certificates"]
APT = """\
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
Dir::State "{home}/apt";
Dir::State::status "{home}/apt/status";
Dir::Cache "{home}/apt";
APT::Sandbox::User "";
"""


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise sources.Failed(f"{(done.stdout + done.stderr)[-2000:]}\nexpected {shlex.join(map(str, command))} to succeed, "
                             f"found status {done.returncode}")
    return done.stdout


def lay_root(target, home):
    """A folder with the files of PACKAGES and of all that they need; nothing of them is run."""
    root = home / "root"
    if (home / ".laid").exists():
        return root
    shutil.rmtree(home, ignore_errors=True)
    for folder in (root, home / "apt/lists/partial", home / "apt/archives/partial"):
        folder.mkdir(parents=True)
    (home / "apt/status").touch()
    (home / "apt.conf").write_text(APT.format(architecture=target.debian, home=home))
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "APT_CONFIG": str(home / "apt.conf")}
    run(["apt-get", "update", "-q"], env=environment)
    run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "--download-only", *PACKAGES], env=environment)
    for package in sorted((home / "apt/archives").glob("*.deb")):
        run(["dpkg-deb", "-x", package, root])
    (home / ".laid").touch()
    return root


def install(target, home, dist, extra=()):
    """Installs the wheel for the root's Python; returns the program that runs its `motley`."""
    if shutil.which(target.runner[0]) is None:
        raise sources.Failed(f"expected {target.runner[0]}, found none\ntry: apt-get install {target.runner_packages}")
    root = lay_root(target, home)
    python = next(root.glob("usr/bin/python3.[0-9]*"))
    version = python.name.removeprefix("python")
    abi = targets.abi_for(version)
    wheel, = dist.glob(f"*-{abi.python}-{abi.tag}-{target.platform}.whl")
    site = home / "site"
    shutil.rmtree(site, ignore_errors=True)
    run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--target",
         site, "--platform", target.platform, "--python-version", version, "--implementation", "cp", wheel, *extra])
    words = [target.runner[0], "-L", root, "-E", f"PYTHONPATH={site}", python, "-m", "motley"]
    program = home / "motley"
    program.write_text(f"#!/bin/sh\nexec {shlex.join(map(str, words))} \"$@\"\n")
    program.chmod(0o755)
    return program
