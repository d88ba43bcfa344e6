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


TARGETS = [
    Target("linux-x86_64", "x86_64-linux-gnu.2.28", "Linux", "x86_64", "linux-x86_64", "manylinux_2_28_x86_64",
           "-x86_64-linux-gnu.so"),
    Target("macos-arm64", "aarch64-macos.11.0", "Darwin", "arm64", "darwin64-arm64-cc", "macosx_11_0_arm64", "-darwin.so"),
]
GLIBC_MAX = (2, 28)
MACOS_MIN = (11, 0)


@dataclasses.dataclass(frozen=True)
class Abi:
    name: str  # of a folder
    python: str  # tag of the oldest Python
    tag: str

    def module(self, target):
        return "_core.abi3.so" if self.tag == "abi3" else f"_core.cpython-{self.python[2:]}{target.suffix}"


# 3.12 is the first with all that nanobind needs in the ABI that stays.
ABIS = [Abi("abi3", "cp312", "abi3"), Abi("cp311", "cp311", "cp311")]
