"""logged.py CASE: prints what callbacks are told, as JSON on standard error."""

import json
import sys

from torch.utils.data import DataLoader

import cases
import motley


def tell(**what):
    sys.stderr.write(f"told {json.dumps(what)}\n")  # at once: the run writes there, too


class Steps:
    def on_step(self, step):
        tell(step=step.number, epoch=step.epoch, loss=step.loss, samples=step.samples, seconds=step.seconds,
             learning_rate=step.learning_rate, gradient_norm=step.gradient_norm)


class Epochs:
    def on_epoch(self, epoch):
        tell(ended=epoch.number)


if __name__ == "__main__":
    case = cases.make(sys.argv[1])
    run = motley.Run(case.model, case.loss, DataLoader(case.train, case.batch, shuffle=True), case.optimizer, schedule=case.schedule,
                     schedule_every=case.schedule_every, clip_norm=case.clip_norm, seed=cases.SEED, callbacks=[Steps(), Epochs()])
    for epoch in run.epochs(case.epochs):
        tell(body=epoch.number)
