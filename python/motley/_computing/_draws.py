"""Which random numbers a device draws. What draws (dropout, noise) may be computed twice, and compared, where two draw the same."""

import hashlib
from collections.abc import Iterable

import torch
from torch import nn
from torch.nn import functional

from motley._samples import _data

SEED, SIZES = 1, (5, 1000, 1 << 17)  # a large tensor is drawn by as many threads as a card has
COARSE = 8  # of normal numbers: their last bits differ between instruction sets


def drawn(device: torch.device, modules: Iterable[nn.Module]) -> int:
    """A hash of 64 bits; 0: nobody knows, since cuDNN's recurrent layers seed their dropout once."""
    card = device.type == "cuda"
    if card and any(isinstance(module, nn.RNNBase) and module.dropout > 0 for module in modules):
        return 0
    hashed = hashlib.blake2b(repr((device.type, torch.cuda.get_device_name(device) if card else "")).encode(), digest_size=8)
    with _data.GENERATORS, _data.RandomWatch(), torch.no_grad():
        torch.manual_seed(SEED)
        for size in SIZES:
            drops = functional.dropout(torch.ones(size, device=device), 0.3)
            chosen = torch.bernoulli(torch.full((size,), 0.5, device=device))
            whole = torch.randint(0, 1000, (size,), device=device)
            normal = (torch.randn(min(size, SIZES[1]), device=device) * COARSE).round()
            for tensor in (drops > 0, chosen > 0, whole, normal.to(torch.int16), torch.rand(size, device=device) > 0.25):
                hashed.update(tensor.cpu().numpy().tobytes())
    return int.from_bytes(hashed.digest(), "little")
