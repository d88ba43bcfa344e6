"""train_program.py NAME: trains one of the programs."""

import sys

import programs

if __name__ == "__main__":
    programs.make(sys.argv[1]).train()
