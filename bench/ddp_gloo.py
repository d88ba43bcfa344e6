#!/usr/bin/env python3
"""The peer of lab.py: PyTorch DistributedDataParallel over Gloo on the same model, data, batch and optimizer.

One process a host; prints one JSON object. With --world 1 the model is not wrapped: the host's own speed.

  GLOO_SOCKET_IFNAME=eth0 ddp_gloo.py --data ~/.cache/motley/fashion-mnist --rank 0 --world 2 --address 10.77.0.10 --batch 256
"""

import argparse
import gzip
import json
import pathlib
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel



class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):
        return self.layers(x)


def idx(directory, kind):
    """The bytes of the elements in an IDX file: four bytes of type and rank, four for each extent, the elements."""
    file = next(directory.glob(f"train-{kind}*"))
    raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8, offset=4 + 4 * raw[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="directory with Fashion-MNIST as IDX files")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--address", default="127.0.0.1", help="of rank 0")
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("--batch", type=int, default=256, help="samples of this host a step")
    parser.add_argument("--weight", type=float, default=1, help="of this host's mean gradient: batch * world / global batch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.rank)
    x, y = (idx(args.data, "images").view(-1, 1, 28, 28) / 255 - 0.2860) / 0.3530, idx(args.data, "labels").long()
    model = Cnn()
    if args.world > 1:
        distributed.init_process_group("gloo", init_method=f"tcp://{args.address}:{args.port}", rank=args.rank, world_size=args.world)
        # As its own guide advises for speed: gradients are views of the buckets that travel.
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    started = 0.0
    for step in range(args.warm_up + args.steps):
        if step == args.warm_up:
            started = time.perf_counter()
        index = torch.randint(len(y), (args.batch,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[index]), y[index]) * args.weight
        loss.backward()
        optimizer.step()
        loss.item()
    seconds = time.perf_counter() - started
    print(json.dumps({"event": "done", "rank": args.rank, "samples_per_s": args.steps * args.batch / seconds}), flush=True)
    if args.world > 1:
        distributed.barrier()
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
