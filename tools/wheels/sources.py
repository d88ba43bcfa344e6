"""What wheels are made of besides this tree, each pinned by its hash: fetched once, unpacked once."""

import dataclasses
import hashlib
import pathlib
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.request

FETCH_SECONDS = 60
SYSTEM_HEADERS = pathlib.Path("/usr/include")
# Libraries that are headers alone come from the system's packages; what they are called there, and the package.
HEADERS = {"asio": "libasio-dev", "asio.hpp": "libasio-dev", "protozero": "libprotozero-dev", "CLI": "libcli11-dev",
           "toml++": "libtomlplusplus-dev", "nlohmann": "nlohmann-json3-dev"}


@dataclasses.dataclass(frozen=True)
class Source:
    name: str
    version: str
    sha256: str
    pool: str  # where Debian's archives have it
    upstream: str  # the same bytes, where their authors publish them; empty: they publish other bytes
    folder: str  # it unpacks to
    wanted: tuple[str, ...] = ()  # parts of it; empty: all
    licence: str = ""
    licence_file: str = ""


OPENSSL = Source(
    "openssl", "3.5.7", "a8c0d28a529ca480f9f36cf5792e2cd21984552a3c8e4aa11a24aa31aeac98e8",
    "main/o/openssl/openssl_3.5.7.orig.tar.gz",
    "https://github.com/openssl/openssl/releases/download/openssl-3.5.7/openssl-3.5.7.tar.gz", "openssl-3.5.7",
    licence="Apache-2.0", licence_file="LICENSE.txt")
# Headers of the Pythons that extensions are made for: all that comes from them is in the extension's own code. What Debian has no more
# (3.10) comes from its authors, or is that of a Python on this machine's PATH; see python_headers().
PYTHONS = {
    "abi3": Source("python", "3.13.5", "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640",
                   "main/p/python3.13/python3.13_3.13.5.orig.tar.xz",
                   "https://www.python.org/ftp/python/3.13.5/Python-3.13.5.tar.xz", "Python-3.13.5", ("Include", "PC")),
    "cp311": Source("python", "3.11.2", "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849",
                    "main/p/python3.11/python3.11_3.11.2.orig.tar.gz",
                    "https://www.python.org/ftp/python/3.11.2/Python-3.11.2.tgz", "Python-3.11.2", ("Include",)),
    "cp310": Source("python", "3.10.12", "afb74bf19130e7a47d10312c8f5e784f24e0527981eab68e20546cfb865830b8",
                    "main/p/python3.10/python3.10_3.10.12.orig.tar.xz",
                    "https://www.python.org/ftp/python/3.10.12/Python-3.10.12.tar.xz", "Python-3.10.12", ("Include",)),
}
IN_DEBIAN = {"abi3", "cp311"}


class Failed(Exception):
    """What was expected and found, and what to try."""


def mirrors():
    """The archives that this machine's apt is set up for."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False)
    return sorted(set(listed.stdout.split()), key=lambda uri: ("security" in uri, uri))


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(source, folder):
    """The archive of `source` in `folder`, with the right hash."""
    archive = folder / source.pool.rsplit("/", 1)[1]
    if archive.exists() and sha256_of(archive) == source.sha256:
        return archive
    folder.mkdir(parents=True, exist_ok=True)
    tried = []
    for url in [f"{mirror.rstrip('/')}/pool/{source.pool}" for mirror in mirrors()] + [source.upstream] * bool(source.upstream):
        partial = archive.with_suffix(".part")
        try:
            with urllib.request.urlopen(url, timeout=FETCH_SECONDS) as answer, open(partial, "wb") as out:
                shutil.copyfileobj(answer, out)
            found = sha256_of(partial)
            if found == source.sha256:
                return partial.rename(archive)
            tried.append(f"{url}: SHA-256 {found}")
        except (urllib.error.URLError, OSError) as error:
            tried.append(f"{url}: {error}")
        partial.unlink(missing_ok=True)
    raise Failed(f"{source.name} {source.version}: expected an archive with SHA-256 {source.sha256}, found\n  " + "\n  ".join(tried)
                 + f"\ntry: apt-get update, or put it at {archive} yourself")


def unpack(source, build):
    """The folder with what is in `source`."""
    folder = build / "sources" / source.folder
    stamp = folder / ".unpacked"
    parts = " ".join(source.wanted)
    if not stamp.exists() or stamp.read_text() != parts:
        archive = fetch(source, build / "downloads")
        shutil.rmtree(folder, ignore_errors=True)
        with tarfile.open(archive) as tar:
            wanted = [member for member in tar if not source.wanted or member.name.split("/")[1:2] in [[part] for part in source.wanted]]
            tar.extractall(build / "sources", wanted, filter="data")
        stamp.write_text(parts)
    return folder


def python_headers(abi, build):
    """The folder with the headers of a Python; None: there are none to be had here."""
    try:
        return unpack(PYTHONS[abi], build) / "Include"
    except Failed:
        if abi in IN_DEBIAN:
            raise
    command = f"python3.{PYTHONS[abi].version.split('.')[1]}"
    ask = [command, "-c", "import sysconfig; print(sysconfig.get_path('include'))"]
    found = subprocess.run(ask, capture_output=True, text=True, check=False) if shutil.which(command) else None
    folder = pathlib.Path(found.stdout.strip()) if found and found.returncode == 0 else None
    return folder if folder and (folder / "Python.h").exists() else None


def lay_headers(include):
    """Links to the headers of the system's packages, and to nothing else that lies beside them."""
    for name, package in HEADERS.items():
        at = SYSTEM_HEADERS / name
        if not at.exists():
            raise Failed(f"expected {at}, which {package} brings; found nothing there\ntry: tools/bootstrap")
        link = include / name
        if not link.is_symlink():
            link.symlink_to(at)
