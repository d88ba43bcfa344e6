#!/usr/bin/env python3
"""Writes a packed data set (docs/formats/packed.md) from a file of samples and a file of targets.

usage: pack.py SAMPLES TARGETS OUT.motley       SAMPLES, TARGETS: .npy or IDX, plain or .gz
"""

import argparse
import gzip
import os
import struct
import sys
import tempfile
import zlib

import numpy as np

MAGIC, VERSION, HEADER_BYTES, ALIGN = b"\x89MOTLEY\n", 1, 128, 64
SAMPLE_TYPES = {np.dtype("<f4"): 1, np.dtype("u1"): 7}


def load(path):
    """An array from an .npy or IDX file of u8, plain or gzip."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else open(path, "rb") as file:
        start = file.read(6)
        file.seek(0)
        if start == b"\x93NUMPY":
            return np.load(file, allow_pickle=False)
        if start[:3] != b"\x00\x00\x08":
            raise ValueError(f"{path}: expected an .npy file or an IDX file of u8, found bytes {start.hex(' ')}")
        shape = struct.unpack(f">{start[3]}I", file.read(4 + 4 * start[3])[4:])
        elements = np.frombuffer(file.read(), dtype=np.uint8)
    if elements.size != np.prod(shape):
        raise ValueError(f"{path}: expected {np.prod(shape)} elements for shape {shape}, found {elements.size}")
    return elements.reshape(shape)


def prepare(samples, targets):
    """Both arrays with the types and shapes they have in the file."""
    if samples.ndim == 0 or len(samples) == 0 or len(samples) != len(targets):
        raise ValueError(f"expected as many targets as samples, at least one; found {samples.shape}, {targets.shape}")
    if samples.dtype != np.uint8:
        samples = samples.astype("<f4")
    elif samples.ndim == 3:  # grey images
        samples = samples[:, None]
    if samples.ndim == 1:
        samples = samples[:, None]
    if samples.ndim > 9 or samples.size == 0:
        raise ValueError(f"expected samples of 1 to 8 dimensions and at least one element, found {samples.shape[1:]}")
    if np.issubdtype(targets.dtype, np.floating):
        targets = targets.astype("<f4").reshape(len(targets), -1)
    else:
        targets = targets.astype("<i8").reshape(len(targets), -1)
        if targets.shape[1] != 1 or targets.min() < 0 or targets.max() >= 1 << 20:
            raise ValueError(f"expected one class number in [0, 2^20) a sample, found shape {targets.shape}")
    return np.ascontiguousarray(samples), np.ascontiguousarray(targets)


def header(samples, targets):
    values = targets.dtype == np.dtype("<f4")
    shape = samples.shape[1:] + (0,) * (9 - samples.ndim)
    fields = struct.pack("<8sI4BI4xQQ8QII12x", MAGIC, VERSION, SAMPLE_TYPES[samples.dtype], values, samples.ndim - 1, 0,
                         targets.shape[1], len(samples), 0 if values else int(targets.max()) + 1, *shape,
                         zlib.crc32(samples), zlib.crc32(targets))
    return fields + struct.pack("<I", zlib.crc32(fields))


def write(path, samples, targets):
    """Writes beside `path`, then renames, so that nobody ever maps half a file."""
    samples, targets = prepare(samples, targets)
    directory = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=directory, prefix=os.path.basename(path), delete=False) as file:
        try:
            file.write(header(samples, targets))
            file.write(samples)
            file.write(bytes(-(HEADER_BYTES + samples.nbytes) % ALIGN))
            file.write(targets)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    return samples, targets


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("samples", help=".npy or IDX, plain or .gz")
    parser.add_argument("targets", help=".npy or IDX, plain or .gz; integers are classes, floats are values")
    parser.add_argument("out", help="the packed file to write, usually NAME.motley")
    arguments = parser.parse_args()
    try:
        samples, targets = write(arguments.out, load(arguments.samples), load(arguments.targets))
    except (OSError, ValueError) as error:
        print(f"pack.py: {error}", file=sys.stderr)
        return 2
    print(f"{arguments.out}: {len(samples)} samples of {samples.dtype} {list(samples.shape[1:])}, targets {targets.dtype}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
