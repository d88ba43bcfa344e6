"""The service files in packaging: the systems that read them accept them, and `motley` understands the command in them."""

import getpass
import plistlib
import shlex
import shutil
import subprocess

import pytest
from conftest import COMMAND, ROOT

UNIT = ROOT / "packaging" / "motley-join.service"
AGENT = ROOT / "packaging" / "org.motley.join.plist"
DAEMON = ROOT / "packaging" / "org.motley.join.daemon.plist"


def home(directory):
    """A home directory with the program and something that is no token."""
    for folder in (".local/bin", ".config/motley", "Library/Logs"):
        (directory / folder).mkdir(parents=True)
    (directory / ".local/bin/motley").symlink_to(COMMAND)
    (directory / ".config/motley/token").write_text("motley1.nonsense\n")
    return directory


def unit_command(directory):
    line, = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart=")]
    return shlex.split(line.removeprefix("ExecStart=").replace("%h", str(directory)))


def launchd_command(file, directory):
    service = plistlib.loads(file.read_bytes())
    assert service["Label"] == file.stem and service["KeepAlive"] is True
    return ["env", f"HOME={directory}", *service["ProgramArguments"]]


def agent_command(directory):
    return launchd_command(AGENT, directory)


def daemon_command(directory):
    """Its file has a line that puts the user's name in."""
    text = DAEMON.read_text()
    line, = [line.strip() for line in text.splitlines() if line.strip().startswith("sed ")]
    assert plistlib.loads(text.encode())["UserName"] == "NAME"
    done = subprocess.run(line.partition(" | sudo")[0], shell=True, capture_output=True, cwd=ROOT, check=True)
    assert plistlib.loads(done.stdout)["UserName"] == getpass.getuser()
    return launchd_command(DAEMON, directory)


@pytest.mark.parametrize("command", [unit_command, agent_command, daemon_command])
def test_the_command_is_understood(tmp_path, command):
    done = subprocess.run(command(home(tmp_path)), capture_output=True, text=True)
    log = tmp_path / "Library/Logs/motley.log"
    said = done.stdout + done.stderr + (log.read_text() if log.exists() else "")
    assert done.returncode == 2 and "token" in said and "error (input)" in said, said


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("%h", str(home(tmp_path))))
    words = ["env", f"XDG_RUNTIME_DIR={tmp_path}", "systemd-analyze", "--user", "verify", str(unit)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and UNIT.name not in done.stderr, done.stderr
