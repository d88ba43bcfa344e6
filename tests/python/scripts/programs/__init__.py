"""Programs as people write them, small: each with what it gives to motley.Run and with the plain PyTorch loop that it would be without."""

import importlib

import torch

from programs.plain import GROUP, SEED

__all__ = ["GROUP", "SEED", "make", "names"]

NAMES = {
    "language": ("char_gpt", "masked_lm", "checkpointed", "looked_at", "lora", "sparse"),
    "generative": ("vae", "ddpm", "wgan", "wgan_in_turns"),
    "vision": ("siamese", "siamese_wide", "detector", "frozen_norm", "mean_teacher"),
    "others": ("class_weights", "pinn", "weight_normed", "subset", "uncertainty", "mixup", "told_by_the_body", "hardly_told", "scripted"),
}


def names():
    return [name for each in NAMES.values() for name in each]


def make(name):
    """The same one each time."""
    (where,) = (module for module, each in NAMES.items() if name in each)
    torch.manual_seed(SEED)
    return getattr(importlib.import_module(f"programs.{where}"), name)()
