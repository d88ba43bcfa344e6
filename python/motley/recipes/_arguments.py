"""Kinds of arguments for argparse. They may be a head's, so each has a limit."""

import argparse
import math
import pathlib
import sys
from collections.abc import Callable
from typing import NoReturn

import motley


class Parser(argparse.ArgumentParser):
    """Called as the recipe is. Wrong words are an error like any other."""

    def __init__(self, description: str):
        super().__init__(pathlib.Path(sys.argv[0]).stem.replace("_", "-"), description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise motley.Error(f"{self.prog}: {message}", f"motley train {self.prog} -- --help", "usage")


def count(most: int, least: int = 1) -> Callable[[str], int]:
    """A whole number."""
    def read(word: str) -> int:
        number = int(word)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"expected a number from {least} to {most}, found {number}")
        return number

    read.__name__ = "whole number"  # in argparse's words
    return read


def rate(word: str) -> float:
    """Of learning."""
    number = float(word)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {word}")
    return number


EPOCHS, STEPS, BATCH, SAMPLES, SEED = count(1_000_000), count(1 << 40), count(1 << 24), count(1 << 24), count((1 << 63) - 1, 0)
