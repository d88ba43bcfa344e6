"""train_case.py CASE [PROCESSES] [rounds]: trains one of cases.py and prints its epochs as JSON on standard error.

PROCESSES read the samples; 0: the thread that computes does.
"""

import json
import sys

from torch.utils.data import DataLoader

import cases
import motley

if __name__ == "__main__":
    case = cases.make(sys.argv[1])
    collate = cases.pad if sys.argv[1] == "tokens" else None
    processes = next((int(word) for word in sys.argv[2:] if word.isdigit()), 0)  # flags of motley's own may follow
    loader = DataLoader(case.train, case.batch, shuffle=True, collate_fn=collate, num_workers=processes, pin_memory=processes > 0)
    run = motley.Run(case.model, case.loss, loader, case.optimizer, schedule=case.schedule, schedule_every=case.schedule_every,
                     test=DataLoader(case.test, 64, collate_fn=collate, num_workers=processes), score=case.score,
                     clip_norm=case.clip_norm, clip_norm_of=case.clip_norm_of, precision=case.precision, seed=cases.SEED,
                     mode="rounds" if "rounds" in sys.argv else None)
    for epoch in run.epochs(case.epochs):
        weights = sum(float(p.detach().double().sum()) for p in case.model.parameters())
        told = json.dumps({"number": epoch.number, "loss": epoch.loss, "test_loss": epoch.test_loss, "weights": weights,
                           "learning_rate": epoch.learning_rate, "step": epoch.step, **epoch.scores})
        sys.stderr.write(f"epoch {told}\n")  # at once: the run writes there, too
