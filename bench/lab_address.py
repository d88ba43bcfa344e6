#!/usr/bin/env python3
"""What lies at an address comes to the machine whose script names it (motley.files), on two hosts of the lab (Linux, root): by http:// and
from a store that speaks S3 (moto's server, in pieces of 40 MiB), as it is and where every tenth answer is cut off in its middle.

share = (bytes * 8 / seconds) / rate of the link. One JSON object a line on standard output, a table on standard error.

  bench/lab_address.py [--megabytes 600] [--rate 1gbit] [--cores 0.9] [--kind http|s3]
"""

import argparse
import os
import pathlib
import shutil
import sys

import measure
from lab import lab, laboratory, on, ready
from lab_address_server import PORT
from lab_data import Watched, rate_of

TIMEOUT_S = 240
RESETS = 10
PLACES = {"http": "http://%s:%d/set.bin", "s3": "s3://bucket/set"}
ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}

BRINGS = """import json, pathlib, sys, time
from motley._content import _origins
place, kind = sys.argv[1:]
if kind == "s3":
    import s3fs
began = time.monotonic()
path = pathlib.Path(_origins.bring(place))
seconds = time.monotonic() - began
size = sum(each.stat().st_size for each in (path.iterdir() if path.is_dir() else [path]))
print(json.dumps({"event": "came", "seconds": seconds, "bytes": size}))
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=600, help="of the file")
    parser.add_argument("--rate", default="1gbit", help="of each link, in both directions")
    parser.add_argument("--cores", default="0.9", help="of each host")
    parser.add_argument("--kind", action="append", choices=PLACES, help="repeatable (default: both)")
    return parser.parse_args()


def brought(python, scratch, path, kind, resets):
    """Seconds of the fetch."""
    server = [python, measure.ROOT / "bench/lab_address_server.py", kind, path, resets]
    serves = Watched(on("one", server), scratch.fresh("serves"), scratch.fresh("home"), **ACCOUNT)
    serves.until("a door", lambda each: isinstance(each, dict))
    place = PLACES[kind] % (lab("ip", "one"), PORT) if kind == "http" else PLACES[kind]
    command = on("two", [python, "-c", BRINGS, place, kind])
    home = scratch.fresh("home")
    takes = Watched(command, scratch.fresh("takes"), home, AWS_ENDPOINT_URL=f"http://{lab('ip', 'one')}:{PORT}", **ACCOUNT)
    came = measure.event(measure.finish(takes.started, TIMEOUT_S), "came")
    serves.stop()
    shutil.rmtree(home)
    if came["bytes"] != os.path.getsize(path):
        raise measure.Failed(f"{came['bytes']} bytes came of {os.path.getsize(path)}")
    return came["seconds"]


def main():
    args = arguments()
    python = measure.python_package()
    if not ready("lab_address"):
        return
    rows = []
    with measure.Scratch() as scratch, laboratory(dict.fromkeys(("one", "two"), float(args.cores)), args.rate):
        path = pathlib.Path(scratch.path / "set.bin")
        path.write_bytes(os.urandom(10**6) * args.megabytes)
        for kind in args.kind or PLACES:
            for resets in (0, RESETS):
                seconds = brought(python, scratch, path, kind, resets)
                rows.append({"kind": kind, "resets_each": resets, "seconds": round(seconds, 2),
                             "share": round(args.megabytes * 8e6 / seconds / rate_of(args.rate), 3)})
                measure.emit(bench="lab_address", bytes=args.megabytes * 10**6, rate=args.rate, cores=args.cores, **rows[-1])
    measure.emit(bench="lab_address", machine=measure.machine())
    measure.table(list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_address: {failure}")
