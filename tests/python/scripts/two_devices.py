"""two_devices.py CASE EPOCHS [WHAT]: trains one of cases.py on a machine that has two devices, both of which are its processor.

WHAT: "raises" in the body; "fails", where the script runs as a worker; "leases": computes them itself; "lacks" the first device.
"""

import sys

from torch.utils.data import DataLoader

import cases
import motley
from motley import _launch
from motley._machines import _devices

_, description, memory, threads = _devices.devices()[-1]
_devices.devices = lambda: [(name, description, memory, threads) for name in ("cuda:7" if "lacks" in sys.argv else "cpu:0", "cpu:1")]

if __name__ == "__main__":
    if "fails" in sys.argv and _launch.role() == "join":
        raise ValueError("not as a worker")
    case = cases.make(sys.argv[1])
    run = motley.Run(case.model, case.loss, DataLoader(case.train, case.batch, shuffle=True), case.optimizer, schedule=case.schedule,
                     schedule_every=case.schedule_every, clip_norm=case.clip_norm, seed=cases.SEED)
    epochs = int(sys.argv[2])
    if "leases" not in sys.argv:
        for _ in run.epochs(epochs):
            if "raises" in sys.argv:
                raise ValueError("enough")
    else:
        for lease in run.leases(epochs):
            for batch in lease:
                mean = case.loss(case.model, batch)
                (mean * len(batch[0])).backward()
                lease.add(mean * len(batch[0]), len(batch[0]))
