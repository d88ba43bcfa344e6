#!/usr/bin/env python3
"""What lies at an address comes to the machine whose script names it (motley.files), on two hosts of the lab (Linux, root): by http://, and
from stores that speak S3, in pieces of 40 MiB: `s3` sends them from a file, `moto` is moto's server. Each as it is, and where every tenth
answer is cut off in its middle. What moto gives at all is said beside it: its pieces over bare connections, in the same ranges, so many at
once as the package asks for, and kept nowhere (plain_share).

share = (bytes * 8 / seconds) / rate of the link. listed_s: until the store's library is ready and has listed what lies there, which is
part of the seconds. Processor seconds are those of the machine that fetches. One JSON object a line on standard output, a table on
standard error.

  bench/lab_address.py [--megabytes 600] [--rate 1gbit] [--cores 0.9] [--kind http|s3|moto]
"""

import argparse
import os
import pathlib
import shutil
import sys

import measure
from lab import lab, laboratory, on, ready
from lab_address_server import PIECE_BYTES, PORT
from lab_data import Watched, rate_of

TIMEOUT_S = 240
RESETS = 10
PLACES = {"http": "http://%s:%d/set.bin", "s3": "s3://bucket/set", "moto": "s3://bucket/set"}
ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}

BRINGS = """import json, pathlib, sys, time
from motley._content import _origins, _stores
place, kind = sys.argv[1:]
if kind != "http":
    import s3fs
fetch, listed = _stores.Store._fetch, []

def fetches(*given):
    listed.append(time.monotonic() - began)
    fetch(*given)

_stores.Store._fetch = fetches
began, worked = time.monotonic(), time.process_time()
path = pathlib.Path(_origins.bring(place))
seconds = time.monotonic() - began
size = sum(each.stat().st_size for each in (path.iterdir() if path.is_dir() else [path]))
worked = time.process_time() - worked
print(json.dumps({"event": "came", "seconds": seconds, "bytes": size, "worked": worked, "listed": (listed or [0])[0]}))
"""
PLAIN = """import concurrent.futures, http.client, json, sys, time
from motley._content import _stores
host, port, size, piece = sys.argv[1], *map(int, sys.argv[2:])
each, place = _stores.RANGE_BYTES, "/bucket/set/%03d.bin"
account = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"}
ranges = [(at // piece, first, min(first + each, piece, size - at) - 1)
          for at in range(0, size, piece) for first in range(0, min(piece, size - at), each)]

def come(mine):
    came, into, link = 0, bytearray(1 << 20), http.client.HTTPConnection(host, port)
    for number, first, last in mine:
        link.request("GET", place % number, headers=account | {"Range": f"bytes={first}-{last}"})
        with link.getresponse() as answer:
            assert answer.status == 206, answer.status
            while count := answer.readinto(into):
                came += count
    return came

began = time.monotonic()
with concurrent.futures.ThreadPoolExecutor() as pool:
    came = sum(pool.map(come, [ranges[number::_stores.AT_ONCE] for number in range(_stores.AT_ONCE)]))
print(json.dumps({"event": "came", "seconds": time.monotonic() - began, "bytes": came}))
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=600, help="of the file")
    parser.add_argument("--rate", default="1gbit", help="of each link, in both directions")
    parser.add_argument("--cores", default="0.9", help="of each host")
    parser.add_argument("--kind", action="append", choices=PLACES, help="repeatable (default: all)")
    return parser.parse_args()


def brought(python, scratch, path, kind, resets):
    """Seconds of the fetch, of its processor and until it had listed what there is; and of bare connections to moto."""
    server = [python, measure.ROOT / "bench/lab_address_server.py", kind, path, resets]
    serves = Watched(on("one", server), scratch.fresh("serves"), scratch.fresh("home"), **ACCOUNT)
    serves.until("a door", lambda each: isinstance(each, dict))
    there, size = lab("ip", "one"), os.path.getsize(path)
    place = PLACES[kind] % (there, PORT) if kind == "http" else PLACES[kind]

    def came(*command):
        home, at = scratch.fresh("home"), f"http://{there}:{PORT}"
        takes = Watched(on("two", [python, "-c", *command]), scratch.fresh("takes"), home, AWS_ENDPOINT_URL=at, **ACCOUNT)
        found = measure.event(measure.finish(takes.started, TIMEOUT_S), "came")
        shutil.rmtree(home)
        if found["bytes"] != size:
            raise measure.Failed(f"{found['bytes']} bytes came of {size}")
        return found

    plain = came(PLAIN, there, PORT, size, PIECE_BYTES)["seconds"] if kind == "moto" and not resets else None
    found = came(BRINGS, place, kind)
    serves.stop()
    return found["seconds"], found["worked"], found["listed"], plain


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
                seconds, worked, listed, plain = brought(python, scratch, path, kind, resets)
                link_s = args.megabytes * 8e6 / rate_of(args.rate)
                rows.append({"kind": kind, "resets_each": resets, "seconds": round(seconds, 2), "processor_s": round(worked, 2),
                             "listed_s": round(listed, 2),
                             "share": round(link_s / seconds, 3), "plain_share": plain and round(link_s / plain, 3)})
                measure.emit(bench="lab_address", bytes=args.megabytes * 10**6, rate=args.rate, cores=args.cores, **rows[-1])
    measure.emit(bench="lab_address", machine=measure.machine())
    measure.table(list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"lab_address: {failure}")
