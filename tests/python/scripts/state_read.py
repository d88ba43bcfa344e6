"""state_read.py WHERE: the loss, the collate function, the data set or the score reads run.state by the run itself. Writes trained.json."""

import json
import pathlib
import sys

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

import cases
import motley

WHERE = sys.argv[1] if __name__ == "__main__" else ""
BATCH, EPOCHS = 60, 3
SAMPLES, TEST = cases.classes(300, 2), cases.classes(60, 3)


class Held:
    """Keeps the dictionary itself."""

    scale: dict[str, float] = {"scale": 1.0}


def scale(where):
    return Held.scale["scale"] if where == WHERE else 1.0


class Scaled(Dataset):
    def __len__(self):
        return len(SAMPLES)

    def __getitem__(self, number):
        x, y = SAMPLES[number]
        return x * scale("data"), y


def collate(samples):
    x, y = default_collate(samples)
    return x * scale("collate"), y


def loss(model, batch):
    return cases.cross_entropy(model, batch) * scale("loss")


def score(model, batch):
    return {"right": (model(batch[0]).argmax(1) == batch[1]).sum() * scale("score")}


def main():
    torch.manual_seed(3)
    model = cases.mlp()
    loader, test = DataLoader(Scaled(), BATCH, shuffle=True, collate_fn=collate), DataLoader(TEST, BATCH, collate_fn=collate)
    run = motley.Run(model, loss, loader, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), seed=cases.SEED, test=test,
                     score=score, state={"scale": 1.0})
    Held.scale = run.state
    for epoch in run.epochs(EPOCHS):
        run.state = {"scale": 1.0 + epoch.number}
    weights = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
    found = {"losses": [epoch.loss for epoch in run.history], "scores": [epoch.right for epoch in run.history], "weights": weights}
    pathlib.Path("trained.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
