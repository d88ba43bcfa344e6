"""The data of `motley train softmax`, made again: blobs around a centre for each class (adapters/softmax)."""

import numpy as np

SEED = 0x6D6F746C6579
WORD = 0xFFFFFFFF
CENTRES, TRAINING = 0, 1  # streams of random numbers


def words(stream):
    """The 32-bit words of Philox-4x32-10 for the seed of the data, one after the other."""
    counter = 0
    while True:
        c = [counter & WORD, counter >> 32, stream, 0]
        k = [SEED & WORD, SEED >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [b >> 32 ^ c[1] ^ k[0], b & WORD, a >> 32 ^ c[3] ^ k[1], a & WORD]
            k = [k[0] + 0x9E3779B9 & WORD, k[1] + 0xBB67AE85 & WORD]
        yield from c
        counter += 1


def noise(random):
    """In float32, as the program has it: the sum of four bytes, about gaussian."""
    return (np.float32(sum(next(random).to_bytes(4, "little"))) - np.float32(510)) / np.float32(147.8)


def below(random, bound):
    while True:
        value = next(random) | next(random) << 32
        if value >= (1 << 64) % bound:
            return value % bound


def training_set(samples, features, classes):
    """x in float64, and y."""
    random = words(CENTRES)
    centres = np.array([[noise(random) for _ in range(features)] for _ in range(classes)], dtype=np.float32)
    random = words(TRAINING)
    x, y = np.empty((samples, features)), np.empty(samples, dtype=np.int64)
    for i in range(samples):
        y[i] = i if i < classes else below(random, classes)  # each class occurs
        x[i] = [centre + noise(random) for centre in centres[y[i]]]
    return x, y
