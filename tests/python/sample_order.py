"""The sample order of docs/formats/order.md, repeated with numpy."""

import numpy as np

ROUNDS, TAG, LOW = 6, 0x4F524400, np.uint64(0xFFFFFFFF)


def philox_first_word(c0, c1, c2, c3, seed):
    """The first word of Philox-4x32-10; c0 is an array of uint64 that hold 32-bit words."""
    c1, c2, c3 = (np.full_like(c0, word) for word in (c1, c2, c3))
    key0, key1, shift = seed & 0xFFFFFFFF, seed >> 32, np.uint64(32)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1 = (b >> shift) ^ c1 ^ np.uint64(key0), b & LOW
        c2, c3 = (a >> shift) ^ c3 ^ np.uint64(key1), a & LOW
        key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0


def sample_order(seed, epoch, size, positions=None):
    """The samples at `positions` (default: all of them) of an epoch, as int64."""
    half_bits = 4
    while 4**half_bits < size:
        half_bits += 1
    bits, mask = np.uint64(half_bits), np.uint64(2**half_bits - 1)
    values = np.arange(size, dtype=np.uint64) if positions is None else np.array(positions, dtype=np.uint64)
    walking = np.arange(len(values))
    while len(walking):
        left, right = values[walking] >> bits, values[walking] & mask
        for number in range(ROUNDS):
            word = philox_first_word(right, TAG + number, epoch & 0xFFFFFFFF, epoch >> 32, seed)
            left, right = right, left ^ (word & mask)
        values[walking] = (left << bits) | right
        walking = walking[values[walking] >= size]
    return values.astype(np.int64)
