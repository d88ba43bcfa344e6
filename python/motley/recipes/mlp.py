"""A multi-layer perceptron on the images of Fashion-MNIST."""

import motley
import torch
from motley.recipes import _arguments, _images
from motley.recipes.fashion_cnn import NORMAL, loss, score
from torch import nn
from torch.utils.data import DataLoader

LAYERS_MAX = 8


class Mlp(nn.Module):
    def __init__(self, hidden: list[int]):
        super().__init__()
        sizes = [_images.SIDE * _images.SIDE, *hidden, _images.CLASSES]
        for number in range(1, len(sizes)):
            self.add_module(f"fc{number}", nn.Linear(sizes[number - 1], sizes[number]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Bytes [n, 1, 28, 28] to logits [n, 10]."""
        mean, deviation = NORMAL["fashion-mnist"]
        x = (x.float().flatten(1) / 255 - mean) / deviation
        *hidden, last = self.children()
        for layer in hidden:
            x = layer(x).relu_()
        return last(x)


def main() -> None:
    parser = _arguments.Parser(description=__doc__)
    _images.add_arguments(parser)
    parser.add_argument("--hidden", type=_arguments.count(1 << 13), nargs="+", default=[256, 128], metavar="SIZE", help="of each layer")
    args = parser.parse_args()
    if len(args.hidden) > LAYERS_MAX:
        parser.error(f"--hidden: at most {LAYERS_MAX} layers")
    train, test = _images.load("fashion-mnist", args.data, args.samples)
    torch.manual_seed(args.seed)
    model = Mlp(args.hidden)
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs * len(loader))
    run = motley.Run(model, loss, loader, optimizer, schedule=schedule, schedule_every="step", seed=args.seed,
                     test=DataLoader(test, batch_size=args.batch_size), score=score)
    for _ in run.epochs(args.epochs):
        pass


if __name__ == "__main__":
    main()
