#!/usr/bin/env python3
"""Two processes of one machine: Gloo's all-reduce (torch.distributed) beside `motley bench link` both ways at once, in turns.

An all-reduce of N bytes between two processes takes N bytes from each to the other, as a step of Motley does; its rate is N over its time.
That of Motley is what each direction carries while both are loaded: over its local socket, which two processes of one user take, and over
TCP on loopback, as if they were of two machines, plain and with TLS. Gloo, over TCP, also adds; Motley checks what comes by TCP (CRC-32C).
One JSON object a line on standard output, a table on standard error.

  bench/gloo_wire.py [--megabytes 64] [--seconds 2] [--rounds 5]
"""

import argparse
import json
import subprocess
import sys

import measure

PEER = """
import json, sys, time, torch, torch.distributed as distributed
rank, port, elements, seconds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
values = torch.zeros(elements)
for _ in range(3):
    distributed.all_reduce(values)
times = []
began = time.perf_counter()
while True:
    more = torch.tensor([1.0 if time.perf_counter() - began < seconds else 0.0])
    distributed.broadcast(more, 0)
    if not more.item():
        break
    start = time.perf_counter()
    distributed.all_reduce(values)
    times.append(time.perf_counter() - start)
if rank == 0:
    print(json.dumps({"event": "gloo", "gb_s": 4e-9 * elements * len(times) / sum(times), "rounds": len(times)}), flush=True)
distributed.barrier()
distributed.destroy_process_group()
"""


TCP = ("--listen", "127.0.0.1:0")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", help="the program (default: build/motley)")
    parser.add_argument("--python", default=str(measure.ROOT / "build/venv/bin/python"), help="a Python with torch")
    parser.add_argument("--megabytes", type=int, default=64, help="of an all-reduce")
    parser.add_argument("--seconds", type=float, default=2, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def gloo(args, port):
    elements = args.megabytes * 1_000_000 // 4
    ranks = [subprocess.Popen([args.python, "-c", PEER, str(rank), str(port), str(elements), str(args.seconds)], stdout=subprocess.PIPE,
                              text=True) for rank in (0, 1)]
    out = [rank.communicate(timeout=120)[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise measure.Failed("torch.distributed with Gloo failed; its errors are above")
    return json.loads(out[0])["gb_s"]


def motley(args, scratch, *listening):
    directory = scratch.fresh("link")
    token = directory.with_suffix(".token")
    listener = measure.start([args.motley, "bench", "link", "--json", "--once", "--write-token", str(token), *listening], directory)
    client = measure.start([args.motley, "bench", "link", "--json", "--token-file", str(token), "--seconds", str(args.seconds)],
                           scratch.fresh("measure"))
    both = measure.event(measure.finish(client, 120), "link")["both"]
    measure.finish(listener, 60)
    return (both["up_mbit_s"] + both["down_mbit_s"]) / 2 / 8000


def main():
    args = arguments()
    args.motley = measure.motley(args.motley)
    rows = []
    with measure.Scratch() as scratch:
        for turn in range(args.rounds):
            theirs = gloo(args, 29510 + turn)
            local, plain, tls = motley(args, scratch), motley(args, scratch, *TCP, "--plaintext"), motley(args, scratch, *TCP)
            rows.append([turn + 1, local, plain, tls, theirs, local / theirs, plain / theirs])
            measure.emit(bench="gloo_wire", turn=turn, local_gb_s=round(local, 3), plain_gb_s=round(plain, 3), tls_gb_s=round(tls, 3),
                         gloo_gb_s=round(theirs, 3))
    local, plain, tls, theirs, ratio, plain_ratio = (round(measure.median(column), 3) for column in list(zip(*rows))[1:])
    measure.emit(bench="gloo_wire", megabytes=args.megabytes, machine=measure.machine(), local_gb_s=local, plain_gb_s=plain, tls_gb_s=tls,
                 gloo_gb_s=theirs, local_over_gloo=ratio, plain_over_gloo=plain_ratio)
    measure.say("\ntwo processes of one machine, GB/s each way")
    measure.table(["turn", "local socket", "plain TCP", "TLS", "Gloo", "local over Gloo", "plain over Gloo"], rows)


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failure:
        sys.exit(f"gloo_wire: {failure}")
