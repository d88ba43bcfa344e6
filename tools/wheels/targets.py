"""What wheels are made for."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Target:
    name: str
    zig: str  # as zig calls it: processor, system, and the oldest version of that
    system: str  # as CMake calls it
    processor: str
    openssl: str  # as its Configure calls it
    platform: str  # as wheels call it
    suffix: str  # of an extension for one version of CPython, after that version
    runner: tuple[str, ...] | None = None  # what runs its programs here, before their names; None: nothing does
    runner_packages: str = ""  # that bring it
    program_suffix: str = ""
    debian: str = ""  # as Debian calls the processor, where a Python for it is run here as well
    abis: tuple[str, ...] = ("abi3", "cp311", "cp310")  # of ABIS


TARGETS = [
    Target("linux-x86_64", "x86_64-linux-gnu.2.28", "Linux", "x86_64", "linux-x86_64", "manylinux_2_28_x86_64",
           "-x86_64-linux-gnu.so", ()),
    Target("linux-aarch64", "aarch64-linux-gnu.2.28", "Linux", "aarch64", "linux-aarch64", "manylinux_2_28_aarch64",
           "-aarch64-linux-gnu.so", ("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"), "qemu-user-static libc6-arm64-cross",
           debian="arm64"),
    Target("macos-arm64", "aarch64-macos.11.0", "Darwin", "arm64", "darwin64-arm64-cc", "macosx_11_0_arm64", "-darwin.so"),
    Target("macos-x86_64", "x86_64-macos.11.0", "Darwin", "x86_64", "darwin64-x86_64-cc", "macosx_11_0_x86_64", "-darwin.so"),
    Target("windows-x86_64", "x86_64-windows-gnu", "Windows", "x86_64", "mingw64", "win_amd64", "", ("wine",), "wine wine64", ".exe",
           abis=("abi3",)),
]


def in_turn(commit):
    """Names of the target of this system, and of one other: which one follows from the commit's hash, so that each has its turn."""
    own = [target.name for target in TARGETS if target.runner == ()]
    others = [target.name for target in TARGETS if target.runner != ()]
    return [*own, others[int(commit[:8] or "0", 16) % len(others)]]


GLIBC_MAX = (2, 28)
MACOS_MIN = (11, 0)


# The C++ tests that tools/wheels --test builds and runs. Not among them: `property`, for which there is no RapidCheck with libc++.
TESTS = ["conformance_codec", "conformance_transport", *[f"unit_{folder}" for folder in (
    "base", "machine", "tensor", "codec", "wire", "blocks", "fleet", "modes", "cluster", "plan", "ps", "compute", "data",
    "store", "report", "transport", "engine", "config", "runtime", "bench", "api", "softmax", "sim")]]
TEST_SECONDS = 1200  # of one program
# What of them cannot be run for a target here, and why.
LEFT_OUT = {
    ("linux-aarch64", "unit_machine"): {
        "ProcessMemory.BeyondTheLimitAnAllocationFails": "qemu sets no limits on memory, which would be its own",
        "ProcessMemory.TheLimitIsThereAsLongAsAnybodyHoldsIt": "as above",
    },
    ("linux-aarch64", "unit_sim"): {"*": "not at its end after 13 minutes under qemu on a busy machine"},
}


@dataclasses.dataclass(frozen=True)
class Abi:
    name: str  # of a folder
    python: str  # tag of the oldest Python
    tag: str

    def module(self, target):
        if target.system == "Windows":
            return "_core.pyd"
        return "_core.abi3.so" if self.tag == "abi3" else f"_core.cpython-{self.python[2:]}{target.suffix}"


# 3.12 is the first with all that nanobind needs in the ABI that stays.
ABIS = [Abi("abi3", "cp312", "abi3"), Abi("cp311", "cp311", "cp311"), Abi("cp310", "cp310", "cp310")]


def abis_of(target):
    return [abi for abi in ABIS if abi.name in target.abis]


def abi_for(version):
    """The one that a wheel for Python `version` ("3.11") has."""
    tag = "cp" + version.replace(".", "")
    return next((abi for abi in ABIS if abi.python == tag and abi.tag == tag), ABIS[0])
