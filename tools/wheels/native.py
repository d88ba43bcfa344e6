"""The core for one target: compilers, static libraries, the extension."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

import checks
import sources
import targets

# TLS 1.3 with the keys and ciphers of src/transport, and nothing that reads files, loads modules or asks for passwords.
OPENSSL_WITHOUT = """
shared tests apps docs dso engine legacy module comp cms ct ocsp ts srp psk dtls quic http cmp rfc3779 uplink afalgeng
autoload-config ui-console srtp ssl-trace nextprotoneg aria bf blake2 camellia cast des idea md4 mdc2 rc2 rc4 rmd160 seed siphash sm2
sm3 sm4 whirlpool dsa ec2m gost scrypt ml-dsa slh-dsa
""".split()


def run(command, cwd, log, environment=None):
    """Runs `command` quietly; what it printed is told where it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a") as out:
        print("$", shlex.join(map(str, command)), file=out, flush=True)
        done = subprocess.run(command, cwd=cwd, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              env=os.environ | (environment or {}), check=False)
    if done.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
        raise sources.Failed(f"{tail}\nexpected {shlex.join(map(str, command))} to succeed, found status {done.returncode}\n"
                             f"all that it printed: {log}")


def find_zig(build):
    """zig itself, installed into an environment of its own."""
    environment = build / "zig"
    wanted = pathlib.Path(__file__).with_name("requirements.txt")
    stamp = environment / "requirements.txt"
    if not stamp.exists() or stamp.read_bytes() != wanted.read_bytes():
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        subprocess.run([environment / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
                        "--no-deps", "--require-hashes", "-r", wanted], check=True)
        shutil.copy(wanted, stamp)
    return next(environment.glob("lib/python*/site-packages/ziglang/zig"))


class Native:
    """One target in a folder of its own. `jobs`: compilers at once."""

    def __init__(self, target, root, build, jobs):
        self.target, self.root, self.build, self.jobs = target, root, build, jobs
        self.home = build / target.name
        self.stage = self.home / "stage"
        self.tools = self.home / "tools"
        self.abis = targets.abis_of(target)  # those whose Python's headers are to be had
        self.environment = {
            "ZIG_GLOBAL_CACHE_DIR": str(build / "zig-cache"),
            "ZIG_LOCAL_CACHE_DIR": str(build / "zig-cache"),
            # The compilers are scripts: what they are is their version and what they say.
            "CCACHE_COMPILERTYPE": "clang",
            "CCACHE_COMPILERCHECK": f"string:{pathlib.Path(__file__).with_name('requirements.txt').read_text()} {target.zig}",
            "CCACHE_BASEDIR": str(root),
            "CCACHE_NOHASHDIR": "1",
            "CCACHE_SLOPPINESS": "time_macros",
            "LC_ALL": "C", "TZ": "UTC",
        }
        # Where this tree lies must not be in what is built.
        self.flags = f"-ffile-prefix-map={root}=. -g0"

    def lay_tools(self):
        self.tools.mkdir(parents=True, exist_ok=True)
        zig = find_zig(self.build)
        target = f"-target {self.target.zig}"
        for name, words in {"cc": f"cc {target}", "c++": f"c++ {target}", "ar": "ar", "ranlib": "ranlib", "rc": "rc"}.items():
            script = f"#!/bin/sh\nexec {shlex.quote(str(zig))} {words} \"$@\"\n"
            path = self.tools / name
            if not path.exists() or path.read_text() != script:
                path.write_text(script)
                path.chmod(0o755)

    def compiler(self):
        ccache = shutil.which("ccache")
        return f"{ccache} {self.tools / 'cc'}" if ccache else str(self.tools / "cc")

    def lay_headers(self):
        include = self.stage / "include"
        include.mkdir(parents=True, exist_ok=True)
        (self.stage / "lib").mkdir(exist_ok=True)
        sources.lay_headers(include)
        for abi in list(self.abis):
            own = self.stage / f"python-{abi.name}"
            if own.is_dir():
                continue
            headers = sources.python_headers(abi.name, self.build)
            if headers is None:
                print(f"{self.target.name}: no wheel for {abi.python}, whose headers no archive has; try: that Python on the PATH",
                      flush=True)
                self.abis.remove(abi)
                continue
            shutil.copytree(headers, own)
            shutil.copy(self.root / "cmake/python/pyconfig.h", own)

    def build_openssl(self):
        if (self.stage / "lib/libssl.a").exists():
            return
        source = sources.unpack(sources.OPENSSL, self.build)
        folder = self.home / "openssl"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        log = self.home / "openssl.log"
        environment = self.environment | {
            "CC": self.compiler(), "AR": str(self.tools / "ar"), "RANLIB": str(self.tools / "ranlib"), "ARFLAGS": "rcsD",
            "CFLAGS": f"-O3 {self.flags} -fvisibility=hidden", "SOURCE_DATE_EPOCH": "0"}
        run(["perl", source / "Configure", self.target.openssl, *[f"no-{word}" for word in OPENSSL_WITHOUT], "--prefix=/nowhere",
             "--openssldir=/nowhere", "--release"], folder, log, environment)
        run(["make", f"-j{self.jobs}", "build_libs"], folder, log, environment)
        for include in (source / "include/openssl", folder / "include/openssl"):
            shutil.copytree(include, self.stage / "include/openssl", dirs_exist_ok=True)
        for library in ("libcrypto.a", "libssl.a"):
            shutil.copy(folder / library, self.stage / "lib")

    def build_python_imports(self):
        """What tells a linker which names python3.dll has: those that stay from one version of Python to the next."""
        listed = (sources.unpack(sources.PYTHONS["abi3"], self.build) / "PC/python3dll.c").read_text()
        names = [name + " DATA" * (kind == "DATA") for kind, name in re.findall(r"^EXPORT_(FUNC|DATA)\((\w+)\)", listed, re.MULTILINE)]
        definition = self.home / "python3.def"
        definition.write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *names, ""]))
        run([find_zig(self.build), "dlltool", "-m", "i386:x86-64", "-d", definition, "-l", self.stage / "lib/libpython3.a"], self.home,
            self.home / "python3.log", self.environment)

    def configure(self, folder, *options):
        run(["cmake", "-S", self.root, "-B", folder, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={self.root / 'cmake/zig.cmake'}",
             f"-DMOTLEY_SYSTEM={self.target.system}", f"-DMOTLEY_PROCESSOR={self.target.processor}", f"-DMOTLEY_ZIG_TOOLS={self.tools}",
             f"-DMOTLEY_STAGE={self.stage}", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON",
             f"-DCMAKE_C_FLAGS={self.flags}", f"-DCMAKE_CXX_FLAGS={self.flags}", *options],
            self.root, self.home / "cmake.log", self.environment)

    def make(self, folder, *goals):
        run(["cmake", "--build", folder, "-j", str(self.jobs), *[f"--target={goal}" for goal in goals]], self.root,
            self.home / "build.log", self.environment)

    def dependencies(self):
        self.lay_tools()
        self.lay_headers()
        self.build_openssl()
        if self.target.system == "Windows":
            self.build_python_imports()

    def tests(self):
        """Builds the C++ tests and runs them where something can; yields what each says of itself in the end."""
        runner = self.target.runner
        if runner and shutil.which(runner[0]) is None:
            raise sources.Failed(f"expected something that runs programs of {self.target.name}, found nothing\n"
                                 f"try: apt-get install {self.target.runner_packages}")
        googletest = self.stage / "googletest"
        if not googletest.is_symlink():
            googletest.symlink_to("/usr/src/googletest")
        folder = self.home / "tests"
        before = [f"-DCMAKE_CXX_FLAGS={self.flags} -include {self.root / 'cmake/zig_macos.h'}"] if self.target.system == "Darwin" else []
        self.configure(folder, *before, "-DMOTLEY_BUILD_PYTHON=OFF", "-DMOTLEY_BUILD_TESTS=ON", "-DMOTLEY_WITHOUT_PROPERTY_TESTS=ON",
                       "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", "-DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST")
        environment = os.environ | {"WINEPREFIX": str(self.home / "wine"), "WINEDEBUG": "-all"}
        failed = []
        for name in targets.TESTS:
            without = targets.LEFT_OUT.get((self.target.name, name), {})
            if "*" in without:
                yield f"{name}: left out, {without['*']}"
                continue
            self.make(folder, name)
            began = time.monotonic()
            program = folder / f"tests/{name}{self.target.program_suffix}"
            if runner is None:
                checks.check_macos_program(program, self.target)
                yield f"{name}: compiled and linked, asks for the system's own libraries alone"
                continue
            done = subprocess.run(["timeout", str(targets.TEST_SECONDS), *runner, program, "--gtest_brief=1",
                                   f"--gtest_filter=-{':'.join(without)}"],
                                  cwd=folder / "tests", env=environment, capture_output=True, text=True, errors="replace", check=False)
            lines = done.stdout.splitlines()
            said = next((line for line in reversed(lines) if "PASSED" in line), "")
            # Under Wine, what crashed may end with status 0.
            if done.returncode != 0 or not said:
                failed.append(name)
                said = "\n".join([f"status {done.returncode}", *lines[-40:], done.stderr[-2000:]])
            yield "\n".join([f"{name}: {said}, {time.monotonic() - began:.0f} s",
                             *(f"  without {test}: {why}" for test, why in without.items())])
        if failed:
            raise sources.Failed(f"{self.target.name}: {', '.join(failed)} failed")

    def extension(self, nanobind):
        """The folder that holds the extension for each ABI as NAME/_core.SUFFIX."""
        folder = self.home / "extension"
        abis = [abi.name for abi in self.abis]
        self.configure(folder, "-DMOTLEY_BUILD_PYTHON=ON", "-DMOTLEY_BUILD_TESTS=OFF", f"-DMOTLEY_NANOBIND={nanobind}",
                       f"-DMOTLEY_PYTHON_ABIS={';'.join(abis)}")
        self.make(folder, *[f"motley_core_{abi}" for abi in abis])
        return folder
