#!/usr/bin/env python3
"""The peer of ray_lab.py: the synchronous parameter server of Ray's documentation ("Parameter Server" among its examples of Ray Core), with
the model, the data, the batch and the optimizer of ray_lab.py.

As there, weights and gradients are lists of arrays in Ray's object store, each worker computes a mini-batch of the same size, and the
server applies the mean. Each worker is pinned to a node and has one thread, as with Motley. Prints one JSON object.

  ray_parameter_server.py --address 10.77.0.10:6379 --batch 256 --steps 100
"""

import argparse
import json
import time

import ray
import ray_script
import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


class Learner:
    """A model whose weights and gradients are lists of arrays."""

    def __init__(self):
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.model = ray_script.Cnn()

    def get_weights(self):
        return {name: value.cpu() for name, value in self.model.state_dict().items()}


@ray.remote(num_cpus=0)
class ParameterServer(Learner):
    def __init__(self):
        super().__init__()
        self.optimizer = ray_script.optimizer(self.model)

    def apply_gradients(self, *gradients):
        self.optimizer.zero_grad()
        for parameter, parts in zip(self.model.parameters(), zip(*gradients)):
            parameter.grad = torch.from_numpy(sum(parts) / len(parts))
        self.optimizer.step()
        return self.get_weights()


@ray.remote
class DataWorker(Learner):
    def __init__(self, batch):
        super().__init__()
        self.batch, self.x, self.y = batch, *ray_script.images()

    def compute_gradients(self, weights):
        self.model.load_state_dict(weights)
        index = torch.randint(len(self.y), (self.batch,))
        self.model.zero_grad()
        ray_script.loss(self.model, (self.x[index], self.y[index])).backward()
        return [parameter.grad.cpu().numpy() for parameter in self.model.parameters()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", required=True)
    parser.add_argument("--batch", type=int, default=256, help="global batch")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=20)
    args = parser.parse_args()
    ray.init(address=args.address, log_to_driver=False, logging_level="WARNING")

    def pinned(node):
        return NodeAffinitySchedulingStrategy(node, soft=False)

    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    server = ParameterServer.options(scheduling_strategy=pinned(ray.get_runtime_context().get_node_id())).remote()
    each = args.batch // len(nodes)
    workers = [DataWorker.options(num_cpus=1, scheduling_strategy=pinned(node)).remote(each) for node in nodes]
    weights = server.get_weights.remote()
    started = 0.0
    for step in range(args.warm_up + args.steps):
        if step == args.warm_up:
            ray.get(weights)
            started = time.perf_counter()
        weights = server.apply_gradients.remote(*[worker.compute_gradients.remote(weights) for worker in workers])
        ray.get(weights)
    seconds = time.perf_counter() - started
    print(json.dumps({"event": "done", "samples_per_s": args.steps * each * len(nodes) / seconds}), flush=True)


if __name__ == "__main__":
    main()
