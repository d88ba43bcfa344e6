"""The usual network of two convolutions on the images of Fashion-MNIST: 89 % after three epochs."""

import motley
import torch
from motley.recipes import _arguments, _images
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

NORMAL = {"fashion-mnist": (0.2860, 0.3530), "mnist": (0.1307, 0.3081)}  # mean and standard deviation of pixels from 0 to 1


class Cnn(nn.Module):
    def __init__(self, mean: float, deviation: float):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(1600, 128), nn.Linear(128, 10)
        self.mean, self.deviation = mean, deviation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Bytes [n, 1, 28, 28] to logits [n, 10]."""
        x = (x.float() / 255 - self.mean) / self.deviation
        # A processor convolves and pools faster where channels lie last. Of one channel both orders are the same bytes: strides say which.
        if x.device.type == "cpu":
            x = x.as_strided(x.shape, (784, 1, 28, 1))
        # Pooling before the ReLU gives the same values and gradients for a quarter of the work.
        x = functional.max_pool2d(self.conv1(x), 2).relu_()
        x = functional.max_pool2d(self.conv2(x), 2).relu_()
        return self.fc2(self.fc1(x.flatten(1)).relu_())


def loss(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
    images, labels = batch
    return functional.cross_entropy(model(images), labels)


def score(model: nn.Module, batch: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    images, labels = batch
    return {"accuracy": (model(images).argmax(1) == labels).sum()}


def main(data: str) -> None:
    parser = _arguments.Parser(description=f"Two convolutions on the images of {data}.")
    _images.add_arguments(parser)
    args = parser.parse_args()
    train, test = _images.load(data, args.data, args.samples)
    torch.manual_seed(args.seed)
    model = Cnn(*NORMAL[data])
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs * len(loader))
    run = motley.Run(model, loss, loader, optimizer, schedule=schedule, schedule_every="step", seed=args.seed,
                     test=DataLoader(test, batch_size=args.batch_size), score=score)
    for _ in run.epochs(args.epochs):
        pass


if __name__ == "__main__":
    main("fashion-mnist")
