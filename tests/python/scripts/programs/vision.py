"""Programs about pictures."""

import copy

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

from programs.generative import SIDE, pictures
from programs.plain import GROUP, Program, plainly_in_groups

# --- a siamese network, whose BatchNorm runs twice in a pass -----------------------------------------------------------------------


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.head = nn.Linear(4 * 36, 8)

    def one(self, x):
        return self.head(torch.tanh(self.norm(self.conv(x))).flatten(1))

    def forward(self, a, b):
        return self.one(a), self.one(b)


def pairs():
    a, b = pictures(160), pictures(160).roll(5, 0)
    return TensorDataset(a, b, ((a - b).abs().amax((1, 2, 3)) < 0.5).float())


def apart(model, batch):
    a, b, same = batch
    distance = functional.pairwise_distance(*model(a, b))
    return (same * distance.pow(2) + (1 - same) * functional.relu(5 - distance).pow(2)).mean()


def siamese():
    """A batch is one group, so that this is the usual loop."""
    model = Siamese()
    return Program(model, apart, pairs(), torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), batch=GROUP)


def siamese_wide():
    """Several groups in a batch, each normalised by itself twice; the running statistics are theirs together."""
    program = siamese()
    program.batch, program.epochs, program.plain = 5 * GROUP, 6, siamese_wide_plainly
    return program


def siamese_wide_plainly(program):
    norm = program.model.norm
    mean, var, seen = norm.running_mean.clone(), norm.running_var.clone(), []
    share = 1 - (1 - norm.momentum) ** 2  # that two passes move

    def after_group(size):
        """One pass each: what two passes leave of statistics that begin at zero is a weighted mean of both."""
        first = norm.running_mean.clone() / share
        seen.append((size, first, norm.running_var / share + first**2))
        norm.running_mean.zero_()
        norm.running_var.zero_()

    def after_step():
        total = sum(size for size, _, _ in seen)
        now = sum(size * first for size, first, _ in seen) / total
        mean.lerp_(now, share)
        var.lerp_(sum(size * second for size, _, second in seen) / total - now**2, share)
        seen.clear()

    norm.running_mean.zero_()
    norm.running_var.zero_()
    yield from plainly_in_groups(program, after_group, after_step)
    norm.running_mean.copy_(mean)
    norm.running_var.copy_(var)
    norm.num_batches_tracked.fill_(2 * len(list(program.batches())))


# --- a detector: pictures with another number of boxes each ----------------------------------------------------------------------

SLOTS = 4


class Scenes(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(3)
        self.images = torch.rand(180, 1, SIDE, SIDE, generator=generator)
        self.boxes = [torch.rand(int(count), 4, generator=generator) for count in torch.randint(SLOTS + 1, (180,), generator=generator)]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], {"boxes": self.boxes[index], "image_id": index}


def as_lists(samples):
    return tuple(zip(*samples))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.boxes = nn.Conv2d(1, 6, 3, stride=2), nn.Linear(6 * 9, 4 * SLOTS)

    def forward(self, images):
        return self.boxes(torch.relu(self.features(torch.stack(images))).flatten(1)).view(-1, SLOTS, 4)


def box_loss(model, batch):
    images, targets = batch
    found = model(list(images))
    losses = [functional.smooth_l1_loss(slots[: len(target["boxes"])], target["boxes"], reduction="sum")
              for slots, target in zip(found, targets, strict=True)]
    boxes = sum(len(target["boxes"]) for target in targets)
    return sum(losses) / max(boxes, 1), boxes


def detector():
    model = Detector()
    return Program(model, box_loss, Scenes(), torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9), collate=as_lists)


# --- fine-tuning with frozen statistics --------------------------------------------------------------------------------------------


class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(4 * 36, SIDE)

    def forward(self, x):
        return self.head(self.backbone(x))


def bars():
    images = pictures()
    return TensorDataset(images, images.sum((1, 3)).argmax(1))


def which_bar(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1])


def frozen_norm():
    """BatchNorm that goes on by the statistics of another training, while its weights are tuned."""
    model = Tuned()
    model.backbone[1].running_mean.uniform_(-0.2, 0.2)
    model.backbone[1].running_var.uniform_(0.1, 0.3)
    model.train()
    model.backbone.eval()
    return Program(model, which_bar, bars(), torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))


# --- a mean teacher ----------------------------------------------------------------------------------------------------------------

DECAY = 0.99


def with_teacher(model, batch, teacher):
    x, y = batch
    with torch.no_grad():
        target = teacher(x).softmax(1)
    logits = model(x)
    return functional.cross_entropy(logits, y) + 0.5 * functional.mse_loss(logits.softmax(1), target)


def mean_teacher():
    model = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 16), nn.Tanh(), nn.Linear(16, SIDE))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return Program(model, with_teacher, bars(), optimizer, mean_teacher_plainly, options={"ema": DECAY})


def mean_teacher_plainly(program, told=False):
    """`told`: the teacher comes last."""
    model = program.model
    teacher = copy.deepcopy(model)
    for _, numbers in program.batches():
        loss = with_teacher(model, program.collated(numbers), teacher)
        program.optimizer.zero_grad()
        loss.backward()
        program.optimizer.step()
        with torch.no_grad():
            for average, weight in zip(teacher.parameters(), model.parameters(), strict=True):
                average.mul_(DECAY).add_(weight, alpha=1 - DECAY)
        yield loss.item()
    if told:
        yield teacher
