"""A residual network of 18 layers for small images (He et al., 2015): those of CIFAR-10, or random ones to measure machines with."""

import pathlib

import motley
import torch
from motley.recipes import _arguments
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

SIDE, CLASSES, BLOCKS = 32, 10, (2, 2, 2, 2)
RECORD = 1 + 3 * SIDE * SIDE  # bytes: the class, then red, green and blue
FILES = {"train": [f"data_batch_{number}.bin" for number in range(1, 6)], "test": ["test_batch.bin"]}


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        self.deep = nn.Sequential(convolution(inputs, width, 3, stride), nn.ReLU(), convolution(width, width, 3))
        self.short = nn.Identity() if inputs == width and stride == 1 else convolution(inputs, width, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.deep(x) + self.short(x))


class ResNet(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        layers, inputs = [convolution(3, width, 3), nn.ReLU()], width
        for stage, blocks in enumerate(BLOCKS):
            for block in range(blocks):
                layers.append(Block(inputs, width << stage, 2 if stage and block == 0 else 1))
                inputs = width << stage
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Bytes [n, 3, 32, 32] to logits [n, 10]."""
        return self.layers((x.float() / 255 - 0.47) / 0.25)


def loss(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
    images, labels = batch
    return functional.cross_entropy(model(images), labels)


def score(model: nn.Module, batch: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    images, labels = batch
    return {"accuracy": (model(images).argmax(1) == labels).sum()}


def load(folder: str, part: str, samples: int) -> TensorDataset:
    """Of CIFAR-10's binary version."""
    content = bytearray()
    for name in FILES[part]:
        with (pathlib.Path(folder) / name).open("rb") as file:
            content += file.read(samples * RECORD - len(content))
    records = torch.frombuffer(content[: len(content) // RECORD * RECORD], dtype=torch.uint8).view(-1, RECORD)
    return TensorDataset(records[:, 1:].reshape(-1, 3, SIDE, SIDE), records[:, 0].long())


def random(samples: int, seed: int) -> TensorDataset:
    draws = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.randint(256, (samples, 3, SIDE, SIDE), dtype=torch.uint8, generator=draws),
                         torch.randint(CLASSES, (samples,), generator=draws))


def main() -> None:
    parser = _arguments.Parser(description=__doc__)
    parser.add_argument("--data", metavar="DIR", help="cifar-10-batches-bin, unpacked (default: random images)")
    parser.add_argument("--samples", type=_arguments.count(1 << 18), default=50_000, help="at most so many")
    parser.add_argument("--epochs", type=_arguments.EPOCHS, default=30)
    parser.add_argument("--batch-size", type=_arguments.BATCH, default=128)
    parser.add_argument("--width", type=_arguments.count(512), default=64, help="channels of the first stage")
    parser.add_argument("--lr", type=_arguments.rate, default=0.1)
    parser.add_argument("--seed", type=_arguments.SEED, default=1)
    args = parser.parse_args()
    folder = None if args.data is None else motley.files(args.data)
    train = random(args.samples, args.seed) if folder is None else load(folder, "train", args.samples)
    test = None if folder is None else DataLoader(load(folder, "test", args.samples), batch_size=args.batch_size)
    torch.manual_seed(args.seed)
    model = ResNet(args.width)
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs * len(loader))
    run = motley.Run(model, loss, loader, optimizer, schedule=schedule, schedule_every="step", seed=args.seed,
                     test=test, score=None if test is None else score)
    for _ in run.epochs(args.epochs):
        pass


if __name__ == "__main__":
    main()
