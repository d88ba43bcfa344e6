"""What a built extension or program asks of a system, read from its own bytes: ELF, Mach-O and PE, 64 bits, little-endian."""

import struct

import targets
from sources import Failed

BYTES_MAX = 15_000_000  # of a wheel
ENTRY = "PyInit__core"
# glibc itself, in the pieces that it had until 2.34.
GLIBC = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
MACHINES = {"x86_64": 62, "aarch64": 183}
PROCESSORS = {"arm64": 0x0100000C, "x86_64": 0x01000007}
DYNAMIC, SYMBOLS, VERSIONS_NEEDED = 6, 11, 0x6FFFFFFE
NEEDED, RPATH, RUNPATH = 1, 15, 29
LOAD_DYLIB = {0x0C, 0x80000018, 0x8000001F}  # as is, weak, re-exported
SYMBOL_TABLE, CODE_SIGNATURE, BUILD_VERSION, RPATH_COMMAND = 0x02, 0x1D, 0x32, 0x8000001C
FLAT_LOOKUP = 0xFE  # whichever library has it: Python's own symbols
WEAK = 0x80  # in the description of a symbol: all libraries of a process share one definition
MAY_BE_MISSING = 0x40  # likewise: headers say that the oldest system asked for lacks it
# operator new and delete, which libc++ brings: weak by the standard's will, and every definition is malloc's.
ALLOCATION = ("__Znw", "__Zna", "__Zdl", "__Zda")
# Of nanobind's exceptions, which extensions of one version of its ABI share by its authors' will; on ARM types are not told apart so.
SHARED_TYPES = ("__ZTIN8nanobind4abi1", "__ZTSN8nanobind4abi1")
MAGIC_ELF, MAGIC_MACHO, MAGIC_PE = b"\x7fELF\x02\x01", b"\xcf\xfa\xed\xfe", b"MZ"
PE_SIGNATURE, PE_64, PE_MACHINES = b"PE\0\0", 0x20B, {"x86_64": 0x8664}
# Of every Windows 10 and later; and the names that stay from one Python to the next.
DLLS = {"kernel32.dll", "user32.dll", "advapi32.dll", "crypt32.dll", "ws2_32.dll", "mswsock.dll", "iphlpapi.dll", "bcrypt.dll",
        "python3.dll"}
C_LIBRARY = "api-ms-win-crt-"  # in the pieces that the system forwards
OF_NANOBIND = "_ZTVN8nanobind4abi1"  # tables of its exceptions; who loads a library asks it for names by its own name


def text_at(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


class Elf:
    def __init__(self, data):
        self.data = data
        self.machine, = struct.unpack_from("<H", data, 18)
        start, = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        # name, type, flags, address, offset, size, link, info, alignment, size of an entry
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]

    def of_type(self, kind):
        return [section for section in self.sections if section[1] == kind]

    def strings(self, section, offset):
        return text_at(self.data, self.sections[section[6]][4] + offset)

    def dynamic(self):
        for section in self.of_type(DYNAMIC):
            for at in range(section[4], section[4] + section[5], 16):
                tag, value = struct.unpack_from("<qQ", self.data, at)
                if tag in (NEEDED, RPATH, RUNPATH):
                    yield tag, self.strings(section, value)

    def versions(self):
        """Of libraries: "GLIBC_2.28"."""
        for section in self.of_type(VERSIONS_NEEDED):
            at, more = section[4], True
            while more:
                _, count, _, first, following = struct.unpack_from("<HHIII", self.data, at)
                one = at + first
                for _ in range(count):
                    _, _, _, name, next_one = struct.unpack_from("<IHHII", self.data, one)
                    yield self.strings(section, name)
                    one += next_one
                more, at = following != 0, at + following

    def exported(self):
        for section in self.of_type(SYMBOLS):
            for at in range(section[4], section[4] + section[5], 24):
                name, info, other, index, _, _ = struct.unpack_from("<IBBHQQ", self.data, at)
                if index != 0 and info >> 4 != 0 and other & 3 == 0:
                    yield self.strings(section, name)


def check_elf(data, target):
    elf = Elf(data)
    if elf.machine != MACHINES[target.processor]:
        yield f"expected machine {MACHINES[target.processor]}, found {elf.machine}"
    for tag, name in elf.dynamic():
        if tag != NEEDED:
            yield f"expected no run path, found {name}"
        elif name not in GLIBC:
            yield f"expected to need glibc alone, found {name}"
    for version in elf.versions():
        number = tuple(int(part) for part in version.removeprefix("GLIBC_").split(".") if part.isdigit())
        if not version.startswith("GLIBC_") or not number or number > targets.GLIBC_MAX:
            yield f"expected versions up to GLIBC_{'.'.join(map(str, targets.GLIBC_MAX))}, found {version}"
    if (exported := sorted(elf.exported())) != [ENTRY]:
        yield f"expected {ENTRY} to be all that is exported, found {', '.join(exported[:8])}"


def commands_of(data):
    count, = struct.unpack_from("<I", data, 16)
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        yield command, at
        at += size


def symbols_of(data, at):
    """(name, kind, description) of those that are not of a file."""
    offset, count, strings = struct.unpack_from("<III", data, at + 8)
    for i in range(count):
        name, kind, _, description, _ = struct.unpack_from("<IBBHQ", data, offset + 16 * i)
        if not kind & 0xE0 and kind & 1:  # else for debuggers, or of a file
            yield text_at(data, strings + name), kind, description


def check_wanted(data, at):
    for name, kind, description in symbols_of(data, at):
        if kind & 0x0E == 0 and description & MAY_BE_MISSING:
            yield f"expected names that macOS {targets.MACOS_MIN[0]} has, found {name}"


def check_symbols(data, at):
    """macOS binds names by library, so what else is exported (of OpenSSL's assembly) meets nobody; what is weak does."""
    exported = set()
    for name, kind, description in symbols_of(data, at):
        if kind & 0x0E == 0:
            if description >> 8 == FLAT_LOOKUP and not name.startswith(("_Py", "__Py")):
                yield f"expected {name} in a library that is named, found it left to whichever has it"
        elif not kind & 0x10:
            exported.add(name)
            if description & WEAK and not name.startswith(ALLOCATION + SHARED_TYPES):
                yield f"expected no weak definitions but of operator new and delete, found {name}"
    if f"_{ENTRY}" not in exported:
        yield f"expected _{ENTRY} to be exported, found {', '.join(sorted(exported)[:8])}"


def check_macho(data, target, extension=True):
    processor, = struct.unpack_from("<I", data, 4)
    if processor != PROCESSORS[target.processor]:
        yield f"expected processor {PROCESSORS[target.processor]:#x}, found {processor:#x}"
    oldest, signed = None, False
    for command, at in commands_of(data):
        if command in LOAD_DYLIB:
            name = text_at(data, at + struct.unpack_from("<I", data, at + 8)[0])
            if not name.startswith(("/usr/lib/", "/System/Library/Frameworks/")):
                yield f"expected libraries of the system alone, found {name}"
        elif command == RPATH_COMMAND:
            yield "expected no run path, found one"
        elif command == SYMBOL_TABLE:
            yield from check_wanted(data, at)
            if extension:
                yield from check_symbols(data, at)
        elif command == BUILD_VERSION:
            version, = struct.unpack_from("<I", data, at + 12)
            oldest = (version >> 16, version >> 8 & 0xFF)
        signed = signed or command == CODE_SIGNATURE
    if oldest is None or oldest > targets.MACOS_MIN:
        yield f"expected it to run on macOS {targets.MACOS_MIN[0]}, found {oldest}"
    if target.processor == "arm64" and not signed:
        yield "expected a signature, without which macOS on ARM loads nothing; found none"


class Pe:
    def __init__(self, data):
        self.data = data
        start, = struct.unpack_from("<I", data, 0x3C)
        self.signature = data[start:start + 4]
        self.machine, sections = struct.unpack_from("<HH", data, start + 4)
        optional_bytes, = struct.unpack_from("<H", data, start + 20)
        self.optional = start + 24
        self.kind, = struct.unpack_from("<H", data, self.optional)
        # address, size in the file, place in the file
        self.sections = [struct.unpack_from("<III", data, self.optional + optional_bytes + 40 * i + 12) for i in range(sections)]

    def at(self, address):
        """Where in the file that lies which is loaded at `address`."""
        return next(place + address - begin for begin, size, place in self.sections if begin <= address < begin + size)

    def directory(self, number):
        """Address of a table; 0: there is none. The second one is that of imports, the first that of exports."""
        return struct.unpack_from("<I", self.data, self.optional + 112 + 8 * number)[0]

    def imported(self):
        address = self.directory(1)
        while address:
            name, = struct.unpack_from("<I", self.data, self.at(address) + 12)
            if name == 0:
                return
            yield text_at(self.data, self.at(name))
            address += 20

    def exported(self):
        address = self.directory(0)
        if address == 0:
            return
        count, _, names = struct.unpack_from("<III", self.data, self.at(address) + 24)
        for i in range(count):
            yield text_at(self.data, self.at(struct.unpack_from("<I", self.data, self.at(names) + 4 * i)[0]))


def check_pe(data, target):
    pe = Pe(data)
    if (pe.signature, pe.kind, pe.machine) != (PE_SIGNATURE, PE_64, PE_MACHINES[target.processor]):
        yield f"expected machine {PE_MACHINES[target.processor]:#x} of 64 bits, found {pe.machine:#x}"
        return
    imported = {name.lower() for name in pe.imported()}
    for name in sorted(imported - DLLS):
        if not name.startswith(C_LIBRARY):
            yield f"expected libraries of the system and python3.dll alone, found {name}"
    if "python3.dll" not in imported:
        yield f"expected to need python3.dll, found {', '.join(sorted(imported)[:8])}"
    exported = set(pe.exported())
    if strange := sorted(name for name in exported - {ENTRY} if not name.startswith(OF_NANOBIND)):
        yield f"expected {ENTRY} to be all that is exported, found {', '.join(strange[:8])}"
    if ENTRY not in exported:
        yield f"expected {ENTRY} to be exported, found {', '.join(sorted(exported)[:8])}"


def check_paths(data, root):
    at = data.find(root.encode())
    if at >= 0:
        yield f"expected nothing of where it was built, found {text_at(data + bytes(1), at)}"


def check_extension(data, target, root="/"):
    """Raises what is wrong with an extension that was built in `root`."""
    kinds = {"Linux": (MAGIC_ELF, check_elf), "Darwin": (MAGIC_MACHO, check_macho), "Windows": (MAGIC_PE, check_pe)}
    magic, check = kinds[target.system]
    wrong = list(check(data, target)) if data.startswith(magic) else [f"expected a file of {target.system}, found {data[:4].hex()}"]
    if root != "/":
        wrong += check_paths(data, root)
    if wrong:
        raise Failed(f"{target.name}: the extension is wrong:\n  " + "\n  ".join(wrong))


def check_macos_program(path, target):
    """Raises what is wrong with a program that nothing here runs."""
    data = path.read_bytes()
    magic = data.startswith(MAGIC_MACHO)
    wrong = list(check_macho(data, target, extension=False)) if magic else [f"expected a file of {target.system}, found {data[:4].hex()}"]
    if wrong:
        raise Failed(f"{target.name}: {path.name} is wrong:\n  " + "\n  ".join(wrong))


def check_size(path):
    size = path.stat().st_size
    if size > BYTES_MAX:
        raise Failed(f"{path.name}: expected {BYTES_MAX} bytes at most, found {size}")
