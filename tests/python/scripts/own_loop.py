"""own_loop.py CASE: trains one of cases.py lease by lease."""

import sys

from torch.utils.data import DataLoader

import cases
import motley

if __name__ == "__main__":
    case = cases.make(sys.argv[1])
    run = motley.Run(case.model, None, DataLoader(case.train, case.batch, shuffle=True), case.optimizer, schedule=case.schedule,
                     schedule_every=case.schedule_every, clip_norm=case.clip_norm, seed=cases.SEED)
    for lease in run.leases(case.epochs):
        for batch in lease:
            mean = case.loss(case.model, batch)
            (mean * len(batch[0])).backward()
            lease.add(mean * len(batch[0]), len(batch[0]))
    print([epoch.number for epoch in run.history], file=sys.stderr)
