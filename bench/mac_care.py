#!/usr/bin/env python3
"""What the care costs that is taken of Apple's GPUs, on one thread of a processor that is taken for one.

  bench/mac_care.py [--model resnet18|gpt] [--steps 20]

Processor seconds of the thread that computes: of the trial before the first task, and after it the part that canary, its reading and whole
gradients take of all tasks. Under build/python-env/bin/python, which has Motley installed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def script(model_name, steps):
    import torch
    from torch.nn import functional

    import motley
    import resnet
    from ddp_gloo import Gpt
    from motley._computing import _care, _computation

    spent = {"care": 0.0, "trial": 0.0, "tasks": 0.0}
    sizes = set()

    def timed(name):
        plain = getattr(_care.Care, name)

        def measured(self, *arguments):
            began = time.thread_time()
            try:
                return plain(self, *arguments)
            finally:
                spent["care"] += time.thread_time() - began

        setattr(_care.Care, name, measured)

    for name in ("begin", "mark", "fault", "hand_down_whole"):
        timed(name)
    _care.of = _care.Care
    computation = _computation.ModelComputation
    opened, closed, forward = computation.open, computation.close, computation.forward
    at, before = [0.0], [0.0]

    def open_task(self, task):
        at[0], before[0] = time.thread_time(), spent["care"]
        self.trying = task.probes
        return opened(self, task)

    def run_forward(self, first, size, wanted, repeats=1):
        if not self.trying:
            sizes.add(size * repeats)
        return forward(self, first, size, wanted, repeats)

    def close_task(self):
        closed(self)
        spent["trial" if self.trying else "tasks"] += time.thread_time() - at[0]
        if self.trying:
            spent["care"] = before[0]

    computation.open, computation.close, computation.forward = open_task, close_task, run_forward
    torch.manual_seed(1)
    if model_name == "gpt":
        model, batch = Gpt(8192, 128, layers=6, heads=6, width=288), 8  # 9.7 million parameters
        words = torch.randint(8192, (batch * steps, 129))
        data = torch.utils.data.TensorDataset(words[:, :-1].contiguous(), words[:, 1:].contiguous())
    else:
        model, batch = resnet.make("resnet18"), 64
        data = torch.utils.data.TensorDataset(torch.randn(batch * steps, 3, 32, 32), torch.randint(10, (batch * steps,)))
    loader = torch.utils.data.DataLoader(data, batch)
    run = motley.Run(model, lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1].flatten()), loader,
                     torch.optim.SGD(model.parameters(), 1e-3))
    for _ in run.epochs(1):
        pass
    print(json.dumps({"event": "care", "model": model_name, "parameters": sum(p.numel() for p in model.parameters()),
                      "sizes": sorted(sizes), "trial_s": round(spent["trial"], 3),
                      "care_per_cent": round(100 * spent["care"] / spent["tasks"], 3)}), file=sys.__stdout__, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["resnet18", "gpt"])
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    for model in [args.model] if args.model else ["resnet18", "gpt"]:
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, "-m", "motley", "train", os.path.abspath(__file__), "--run", f"{directory}/run", "--listen",
                       "127.0.0.1:0", "--threads", "1", "--device", "cpu", "--json", "script", model, str(args.steps)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            told = [line for line in done.stdout.splitlines() if '"event": "care"' in line]
            print(told[-1] if told else done.stdout[-3000:] + done.stderr[-3000:])


if __name__ == "__main__":
    if sys.argv[1:2] == ["script"]:
        script(sys.argv[2], int(sys.argv[3]))
    else:
        main()
