#!/usr/bin/env python3
"""Random (budget, model, batch) cases of a script under a memory limit of a control group: how many train, are refused, or die.

One JSON object a line on standard output: each case, then the sum. Needs Linux and root. Exit status 1 if one died.

  bench/memory.py [--cases 100] [--seed 1]
"""

import argparse
import json
import sys
import tempfile

import measure

sys.path.insert(0, str(measure.ROOT / "tests" / "python"))
import limited_memory  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if reason := limited_memory.why_not():
        print(f"bench/memory.py: left out: {reason}", file=sys.stderr)
        return 0
    counts = {"trained": 0, "refused": 0, "died": 0}
    with tempfile.TemporaryDirectory() as directory:
        for result in limited_memory.run_cases(measure.motley(args.motley), directory, args.cases, args.seed):
            counts[result["verdict"]] += 1
            print(json.dumps(result), flush=True)
    print(json.dumps({"bench": "memory", "cases": args.cases, "seed": args.seed, **counts}))
    return 1 if counts["died"] else 0


if __name__ == "__main__":
    sys.exit(main())
