"""A run that is followed by a logger: TensorBoard, Weights & Biases or MLflow, each of which is imported only where it is chosen."""

import argparse

import motley
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--logger", choices=["none", "tensorboard", "wandb", "mlflow"], default="none")
parser.add_argument("--project", default="motley", help="under which name; for TensorBoard the folder")
parser.add_argument("--epochs", type=int, default=5)
args = parser.parse_args()


def values(told):
    """The numbers of a step or an epoch."""
    found = {name: getattr(told, name) for name in ("loss", "test_loss", "learning_rate", "gradient_norm") if hasattr(told, name)}
    return {name: value for name, value in {**found, **getattr(told, "scores", {})}.items() if value is not None}


class TensorBoard:
    def __init__(self):
        from torch.utils.tensorboard import SummaryWriter
        self.writer = SummaryWriter(args.project)

    def on_step(self, step):
        for name, value in values(step).items():
            self.writer.add_scalar(f"step/{name}", value, step.number)

    def on_epoch(self, epoch):
        for name, value in values(epoch).items():
            self.writer.add_scalar(f"epoch/{name}", value, epoch.number)
        self.writer.flush()


class WeightsAndBiases:
    def __init__(self):
        import wandb
        self.run = wandb.init(project=args.project, config=vars(args))

    def on_step(self, step):
        self.run.log({f"step/{name}": value for name, value in values(step).items()} | {"step": step.number})

    def on_epoch(self, epoch):
        self.run.log({f"epoch/{name}": value for name, value in values(epoch).items()} | {"epoch": epoch.number})


class MLflow:
    def __init__(self):
        import mlflow
        self.mlflow = mlflow
        mlflow.set_experiment(args.project)
        mlflow.log_params(vars(args))  # begins a run

    def on_step(self, step):
        self.mlflow.log_metrics({f"step/{name}": value for name, value in values(step).items()}, step=step.number)

    def on_epoch(self, epoch):
        self.mlflow.log_metrics({f"epoch/{name}": value for name, value in values(epoch).items()}, step=epoch.number)


class Once:
    """Opens a logger with what it is first told: on the head alone, since other machines are told of nothing."""

    def __init__(self, kind):
        self.kind, self.logger = kind, None

    def on_step(self, step):
        self.logger = self.logger or self.kind()
        self.logger.on_step(step)

    def on_epoch(self, epoch):
        self.logger = self.logger or self.kind()
        self.logger.on_epoch(epoch)


def loss(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x), y)


def score(model, batch):
    x, y = batch
    return {"accuracy": (model(x).argmax(1) == y).sum()}


torch.manual_seed(1)
x = torch.randn(10000, 20)
y = (x @ torch.randn(20, 5)).argmax(1)
train = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=256, shuffle=True)
test = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=256)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loggers = {"none": [], "tensorboard": [Once(TensorBoard)], "wandb": [Once(WeightsAndBiases)], "mlflow": [Once(MLflow)]}
run = motley.Run(model, loss, train, optimizer, test=test, score=score, clip_norm=1.0, callbacks=loggers[args.logger])
for epoch in run.epochs(args.epochs):
    print(epoch.number, epoch.accuracy)
