"""Residual networks of the usual shapes (He et al., 2015), which normalise after every convolution."""

from torch import nn

# Blocks of each of the four stages; whether a block has a bottleneck, which widens by four.
SHAPES = {"resnet18": ((2, 2, 2, 2), False), "resnet50": ((3, 4, 6, 3), True)}


def normalised(inputs, outputs, size, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        layers = [normalised(inputs, width, 1), nn.ReLU(), normalised(width, width, 3, stride), nn.ReLU(), normalised(width, outputs, 1)]
        if not bottleneck:
            layers = [normalised(inputs, width, 3, stride), nn.ReLU(), normalised(width, width, 3)]
        self.deep = nn.Sequential(*layers)
        self.short = nn.Identity() if inputs == outputs and stride == 1 else normalised(inputs, outputs, 1, stride)
        self.end = nn.ReLU()

    def forward(self, x):
        return self.end(self.deep(x) + self.short(x))


def make(name, channels=3, classes=10):
    stages, bottleneck = SHAPES[name]
    layers, inputs = [normalised(channels, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for number, blocks in enumerate(stages):
        width = 64 << number
        for block in range(blocks):
            layers.append(Block(inputs, width, 2 if number and block == 0 else 1, bottleneck))
            inputs = 4 * width if bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
