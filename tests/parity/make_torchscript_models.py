"""Writes TorchScript files for the tests, as people make them: DIRECTORY/{convnet,tied,frozen,attention}.pt; and as nobody should:
DIRECTORY/hostile-*.pt, each of which would write to the file DIRECTORY/written if it were run.

With --check FILE it loads an exported file instead and prints its state_dict names and an output.
"""

import sys
import zipfile
from pathlib import Path

import torch
from torch import nn


class Convnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(4 * 3 * 3, 5))

    def forward(self, x):
        return self.head(self.features(x))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return self.out(torch.relu(self.second(torch.relu(self.first(x)))))


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 4)
        self.base.requires_grad_(False)
        self.unused = nn.Linear(2, 2)
        self.register_buffer("scale", torch.tensor([2.0]))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.relu(self.base(x)) * self.scale)


class Attention(nn.Module):
    """Large parts of torch.nn in one: what the layers call besides their arithmetic is allowed as well."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
        self.recurrent = nn.LSTM(6, 6, batch_first=True)
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        y, _ = self.recurrent(self.layer(x.unsqueeze(1)))
        return self.out(nn.functional.softmax(y[:, -1]))


class Writes(nn.Module):
    def __init__(self, path: str):
        super().__init__()
        self.out = nn.Linear(6, 3)
        self.path = path

    def forward(self, x):
        return self.out(x) + torch.from_file(self.path, True, 4).sum()


class WritesWhenLoaded(nn.Module):
    def __init__(self, path: str):
        super().__init__()
        self.out = nn.Linear(6, 3)
        self.path = path
        self.touched = torch.zeros(1)

    @torch.jit.export
    def __getstate__(self):
        return self.path

    @torch.jit.export
    def __setstate__(self, path: str):
        self.path = path
        self.touched = torch.from_file(path, True, 4)

    def forward(self, x):
        return self.out(x)


class Prints(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        print("anything")
        return self.out(x)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return torch.relu(self.out(x))


def rewritten(source, target, old, new):
    """A copy of a file whose code says something that no compiler of torch's wrote."""
    changed = 0
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(target, "w") as after:
        for name in before.namelist():
            data = before.read(name)
            if "/code/" in name and name.endswith(".py") and old.encode() in data:
                data, changed = data.replace(old.encode(), new.encode()), changed + 1
            after.writestr(name, data)
    assert changed == 1, changed


def make_hostile(directory):
    written = str(directory / "written")
    torch.jit.script(Writes(written)).save(str(directory / "hostile-file.pt"))
    torch.jit.script(WritesWhenLoaded(written)).save(str(directory / "hostile-state.pt"))
    torch.jit.script(Prints()).save(str(directory / "hostile-print.pt"))
    plain = directory / "plain.pt"
    torch.jit.script(Plain()).save(str(plain))
    call = f'("{written}", True, 4)'
    arguments = f'("{written}", True, 4)'
    for name, line in {"getattr": f'x = torch.add(x, torch.sum(getattr(torch, "from_file"){arguments}))',
                       "ops": f"x = torch.add(x, torch.sum(ops.aten.from_file{arguments}))",
                       "save": f'ops.aten.save(0, "{written}")',
                       "unknown": f"x = torch.add(x, ops.mine.write{arguments})"}.items():
        rewritten(plain, directory / f"hostile-{name}.pt", "return torch.relu(", f"{line}\n    return torch.relu(")


def main():
    if sys.argv[1] == "--check":
        model = torch.jit.load(sys.argv[2])
        print(" ".join(model.state_dict()))
        print(tuple(model(torch.zeros(3, 1, 28, 28)).shape))
        return
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for name, model in (("convnet", Convnet()), ("tied", Tied()), ("frozen", Frozen()), ("attention", Attention())):
        torch.jit.script(model).save(str(directory / f"{name}.pt"))
    make_hostile(directory)


if __name__ == "__main__":
    main()
