"""Programs about anything else."""

import random

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset, SubsetRandomSampler, TensorDataset

from programs.plain import Program, plainly, plainly_in_groups

KINDS = 4


def sorted_points(count=180):
    """Points by kind, the kinds one after the other, most of them of the first."""
    generator = torch.Generator().manual_seed(6)
    kind = (torch.arange(count) / count).pow(2).mul(KINDS).long()
    return TensorDataset(torch.randn(count, 6, generator=generator) + kind[:, None], kind)


def points_model():
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, KINDS))


def cross_entropy(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1])


# --- weights of classes --------------------------------------------------------------------------------------------------------

WEIGHTS = torch.tensor([0.2, 0.5, 1.0, 4.0])


def by_class(model, batch):
    """What everybody writes, and what no part of a batch can be scaled by."""
    x, y = batch
    return functional.cross_entropy(model(x), y, weight=WEIGHTS.to(x.device))


def by_class_and_weight(model, batch):
    x, y = batch
    weight = WEIGHTS.to(x.device)[y].sum()
    return functional.cross_entropy(model(x), y, weight=WEIGHTS.to(x.device), reduction="sum") / weight, weight


def class_weights():
    model = points_model()
    return Program(model, by_class_and_weight, sorted_points(), torch.optim.SGD(model.parameters(), lr=0.1), class_weights_plainly)


def class_weights_plainly(program):
    program.loss = by_class
    yield from plainly(program)


# --- samples that weigh nothing --------------------------------------------------------------------------------------------------

def where_told(model, batch):
    """In many a share nothing counts, and a mean over nothing is no number."""
    x, y = batch
    return functional.cross_entropy(model(x), y), (y >= 0).sum()


def hardly_told():
    model, (x, y) = points_model(), sorted_points().tensors
    y = torch.where(torch.arange(len(y)) % 12 == 5, y, -100)
    return Program(model, where_told, TensorDataset(x, y), torch.optim.SGD(model.parameters(), lr=0.1))


# --- a differential equation -----------------------------------------------------------------------------------------------------


class Points(Dataset):
    """Of the unit square, every fourth on its edge."""

    def __init__(self, seed):
        self.at = torch.rand(180, 2, generator=torch.Generator().manual_seed(seed))
        self.at[::4, 0] = self.at[::4, 0].round()

    def __len__(self):
        return len(self.at)

    def __getitem__(self, index):
        return self.at[index], index % 4 == 0


def poisson(model, batch):
    """u_xx + u_yy = -2 pi^2 sin(pi x) sin(pi y), and zero on the edge."""
    at, edge = batch
    at = at.clone().requires_grad_()
    u = model(at)
    (slope,) = torch.autograd.grad(u, at, torch.ones_like(u), create_graph=True)
    curved = [torch.autograd.grad(slope[:, i], at, torch.ones_like(slope[:, i]), create_graph=True)[0][:, i] for i in range(2)]
    force = 2 * torch.pi**2 * torch.sin(torch.pi * at).prod(1)
    return torch.where(edge, 10 * u[:, 0] ** 2, (sum(curved) + force) ** 2).mean()


def pinn():
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    tested = torch.utils.data.DataLoader(Points(5), 64)
    return Program(model, poisson, Points(4), torch.optim.Adam(model.parameters(), lr=1e-3), options={"test": tested})


# --- the rest --------------------------------------------------------------------------------------------------------------------


def weight_normed():
    """The old weight_norm, which makes the weight anew before every pass."""
    model = points_model()
    for layer in (model[0], model[2]):
        torch.nn.utils.weight_norm(layer)
    return Program(model, cross_entropy, sorted_points(), torch.optim.SGD(model.parameters(), lr=0.1))


def subset():
    """A split for validation, as it is made by samplers."""
    model, chosen = points_model(), torch.randperm(180, generator=torch.Generator().manual_seed(2))[:150].tolist()
    return Program(model, cross_entropy, sorted_points(), torch.optim.SGD(model.parameters(), lr=0.1), sampler=SubsetRandomSampler(chosen),
                   chosen=chosen)


class Uncertain(nn.Module):
    """Two tasks, weighed by what they leave unexplained."""

    def __init__(self):
        super().__init__()
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, model, batch):
        x, y = batch
        found = model(x)
        tasks = torch.stack([functional.cross_entropy(found, y), functional.mse_loss(found[:, 0], x.mean(1))])
        return (torch.exp(-self.log_vars) * tasks + self.log_vars).sum()


def uncertainty():
    model, loss = points_model(), Uncertain()
    return Program(model, loss, sorted_points(), torch.optim.Adam([*model.parameters(), *loss.parameters()], lr=0.01))


# --- random numbers that are not torch's ------------------------------------------------------------------------------------------


def mixed_up(model, batch):
    """Mixup, and an occlusion."""
    x, y = batch
    share, other = numpy.random.beta(0.4, 0.4), numpy.random.permutation(len(x))
    hidden = torch.ones_like(x)
    hidden[:, random.randrange(x.shape[1])] = 0
    found = model((share * x + (1 - share) * x[other]) * hidden)
    return share * functional.cross_entropy(found, y) + (1 - share) * functional.cross_entropy(found, y[other])


def jittered(samples):
    x, y = torch.utils.data.default_collate(samples)
    return x + torch.from_numpy(numpy.random.normal(0, 0.1, x.shape).astype("f4")), y


def mixup():
    model = points_model()
    return Program(model, mixed_up, sorted_points(), torch.optim.SGD(model.parameters(), lr=0.1), plainly_in_groups, batch=160,
                   collate=jittered)


# --- a body that says how to go on ------------------------------------------------------------------------------------------------


def penalised(model, batch, state):
    return cross_entropy(model, batch) * state["scale"] + state["penalty"] * model[0].weight.square().sum()


def after(epoch):
    x, y = sorted_points().tensors
    return {"scale": 1 + 0.1 * epoch, "penalty": 0.01 * epoch}, (x + 0.3 * epoch, y)


def told_by_the_body():
    import motley
    model, samples = points_model(), motley.HeadTensors(*sorted_points().tensors)

    def body(run, epoch):
        run.state, made = after(epoch)
        samples.replace(*made)

    return Program(model, penalised, samples, torch.optim.SGD(model.parameters(), lr=0.1), told_plainly, options={"state": after(0)[0]},
                   body=body)


def told_plainly(program):
    for step, numbers in program.batches():
        state, samples = after(step // 4)
        program.data = TensorDataset(*samples)
        program.optimizer.zero_grad()
        loss = penalised(program.model, program.collated(numbers), state)
        loss.backward()
        program.optimizer.step()
        yield loss.item()


# --- a model that torch has compiled to TorchScript ------------------------------------------------------------------------------


def scripted():
    model = torch.jit.script(points_model())
    return Program(model, cross_entropy, sorted_points(), torch.optim.SGD(model.parameters(), lr=0.1))
