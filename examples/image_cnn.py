"""A convolutional network with BatchNorm on augmented images of Fashion-MNIST."""

import argparse
import gzip
import pathlib
import random

import motley
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--samples", type=int, default=60000)
args = parser.parse_args()


class Images(Dataset):
    """Images as float32 [1, 28, 28] with their class; shifted and mirrored at random for training."""

    def __init__(self, part, samples, augment):
        images = gzip.decompress((args.data / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
        labels = gzip.decompress((args.data / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
        self.images = torch.frombuffer(bytearray(images), dtype=torch.uint8).view(-1, 1, 28, 28)[:samples].float() / 255
        self.labels = torch.frombuffer(bytearray(labels), dtype=torch.uint8)[:samples].long()
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        if self.augment:
            padded = functional.pad(image, (2, 2, 2, 2))
            top, left = random.randrange(5), random.randrange(5)
            image = padded[:, top : top + 28, left : left + 28]
            if random.random() < 0.5:
                image = image.flip(2)
        return image, self.labels[index]


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


def loss(model, batch):
    images, labels = batch
    return functional.cross_entropy(model(images), labels)


def score(model, batch):
    images, labels = batch
    return {"accuracy": (model(images).argmax(1) == labels).sum()}


torch.manual_seed(1)
train = DataLoader(Images("train", args.samples, True), batch_size=256, shuffle=True)
test = DataLoader(Images("t10k", args.samples, False), batch_size=256)
model = nn.Sequential(block(1, 32), block(32, 64), block(64, 128), nn.Flatten(), nn.Linear(128 * 9, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=args.epochs * len(train))
run = motley.Run(model, loss, train, optimizer, schedule=schedule, schedule_every="step", test=test, score=score)
for epoch in run.epochs(args.epochs):
    print(epoch.number, epoch.accuracy)
