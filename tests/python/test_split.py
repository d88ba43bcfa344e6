"""Whether a loss may be split is decided in float64: what is a mean over samples passes and what is not is refused, with any seed."""

import random

import numpy
import pytest
import torch
from torch import nn
from torch.distributions import Beta, Binomial, Cauchy, Dirichlet, Gamma, Poisson
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import cases
import motley
from motley._samples import _data
from motley._trials import _inspect

SEEDS = pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 20), marks=pytest.mark.nightly)], ids=["5", "15 more"])
SIZE, BATCH = 200, 40


def model_of(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(cases.FEATURES, 16), nn.Tanh(), nn.Linear(16, cases.CLASSES))


def inspected(loss, seed, model=None, precision="fp32", data=None, collate=None):
    model = model or model_of(seed)
    source = _data.BatchSource(DataLoader(data or cases.classes(SIZE, seed), BATCH, shuffle=True, collate_fn=collate), "train_loader")
    return _inspect.inspect(lambda batch: loss(model, batch), model, source, precision, True, {"loss": loss})


# --- means over samples ----------------------------------------------------------------------------------------------------------


def token_mean(model, batch):
    x, y = batch
    losses = functional.cross_entropy(model(x), y, reduction="none") * (y > 1)
    return losses.sum() / (y > 1).sum(), (y > 1).sum()


def weighted(model, batch):
    x, y = batch
    weights = torch.tensor([1.0, 5.0, 1.0, 9.0, 1.0])
    return functional.cross_entropy(model(x), y, weights), weights[y].sum()


def noisy(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x + 0.1 * torch.randn_like(x)), y)


def dropped(model, batch):
    x, y = batch
    return functional.cross_entropy(model(functional.dropout(x, 0.3)), y)


def mixed_up(model, batch):
    """Mixup: one draw for each batch, and partners within it."""
    x, y = batch
    share = numpy.random.beta(0.4, 0.4)
    other = torch.randperm(len(x))
    output = model(share * x + (1 - share) * x[other])
    return share * functional.cross_entropy(output, y) + (1 - share) * functional.cross_entropy(output, y[other])


def timesteps(model, batch):
    """As a diffusion model: a step and noise for each sample."""
    x, y = batch
    t, noise = torch.randint(0, 10, (len(x),)), torch.randn_like(x)
    return (model(x * (t / 10).unsqueeze(1) + noise).sum(1) - noise.sum(1)).square().mean()


def pythons(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x * random.uniform(0.9, 1.1)), y)


def own_modes(model, batch):
    model.train()
    return cases.cross_entropy(model, batch)


def second_derivatives(model, batch):
    x = batch[0].clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def in_half(model, batch):
    x, y = batch
    return functional.cross_entropy(model(x).to(torch.bfloat16).float(), y)


def leaky_by_chance(model, batch):
    x, y = batch
    return functional.cross_entropy(functional.rrelu(model(x), training=True), y)


def of_distributions(model, batch):
    rate = functional.softplus(model(batch[0])) + 0.5
    one = torch.ones_like(rate)
    drawn = Gamma(rate, one).rsample() + Dirichlet(rate).rsample() + Beta(rate, one).rsample()
    return (drawn + Poisson(one).sample() + Binomial(3, one / 2).sample() + Cauchy(one, one).sample().clamp(-3, 3)).square().mean()


MEANS = [cases.cross_entropy, token_mean, weighted, noisy, dropped, mixed_up, timesteps, pythons, own_modes, second_derivatives,
         in_half, leaky_by_chance, of_distributions]


@SEEDS
@pytest.mark.parametrize("loss", MEANS)
def test_means_over_samples_pass_with_every_seed(loss, seeds):
    for seed in seeds:
        assert "splits to" in inspected(loss, seed).line


# --- what is none ----------------------------------------------------------------------------------------------------------------


def dice(model, batch):
    x, y = batch
    p = torch.sigmoid(model(x)[:, 0])
    return 1 - 2 * (p * (y > 2)).sum() / (p.sum() + (y > 2).sum())


def hardest(model, batch):
    x, y = batch
    losses = functional.cross_entropy(model(x), y, reduction="none")
    return losses.topk(min(len(losses), max(4, len(losses) // 4))).values.mean()


def in_batch_negatives(model, batch):
    output = functional.normalize(model(batch[0]), dim=1)
    return functional.cross_entropy(output @ output.T * 5, torch.arange(len(output)))


def normalised_advantages(model, batch):
    x, y = batch
    advantage = (y - y.float().mean()) / (y.float().std(unbiased=False) + 1e-6)
    return -(functional.log_softmax(model(x), 1)[:, 0] * advantage).mean()


def over_positives(model, batch):
    x, y = batch
    p = torch.sigmoid(model(x)[:, 0])
    focal = (1 - p).square() * functional.binary_cross_entropy(p, (y == 0).float(), reduction="none")
    return focal.sum() / (y == 0).sum().clamp(min=1)


def small_term(model, batch):
    output = model(batch[0])
    return functional.cross_entropy(output, batch[1]) + 1e-3 * output.mean(0).square().sum()


def class_weights(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1], torch.tensor([1.0, 5.0, 1.0, 9.0, 1.0]))


def decorrelation(model, batch):
    output = model(batch[0])
    return functional.cross_entropy(output, batch[1]) + 0.01 * (output.T @ output / len(output)).square().sum()


def root(model, batch):
    return functional.mse_loss(model(batch[0])[:, 0], batch[1].float()).sqrt()


def neighbours(model, batch):
    output = model(batch[0])
    return functional.cross_entropy(output, batch[1]) + (output - output.roll(1, 0)).square().mean()


def noisy_contrast(model, batch):
    x = batch[0]
    first, second = (functional.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1) for _ in range(2))
    return functional.cross_entropy(first @ second.T * 5, torch.arange(len(x)))


def summed(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1], reduction="sum")


OTHERS = [dice, hardest, in_batch_negatives, normalised_advantages, over_positives, small_term, class_weights, decorrelation, root,
          neighbours, noisy_contrast, summed]
REMEDIES = {summed: "reduction='mean'", class_weights: "(mean, weight)", in_batch_negatives: "contrastive"}


@SEEDS
@pytest.mark.parametrize("loss", OTHERS)
def test_what_is_no_mean_is_refused_with_every_seed(loss, seeds):
    for seed in seeds:
        said = "sum over the samples, expected their mean" if loss is summed else "over the samples"
        with pytest.raises(motley.Error, match=said) as refused:
            inspected(loss, seed)
        assert REMEDIES.get(loss, "") in refused.value.hint


@SEEDS
def test_rounding_of_a_lower_precision_is_no_reason(seeds):
    for seed in seeds:
        inspected(cases.cross_entropy, seed, precision="bf16")


def test_data_sorted_by_class_hide_nothing():
    x, y = cases.classes(SIZE, 2).tensors
    order = y.argsort()
    with pytest.raises(motley.Error, match="not a mean over the samples"):
        inspected(class_weights, 1, data=TensorDataset(x[order], y[order]))


def test_texts_of_full_length_hide_nothing():
    """A mean over tokens where the first texts have no padding."""
    tokens = torch.ones(SIZE, cases.FEATURES)
    tokens[150:, 6:] = 0

    def loss(model, batch):
        return ((model(batch[0]).square().sum(1, keepdim=True) * batch[0]).sum()) / batch[0].sum()

    with pytest.raises(motley.Error, match="not a mean over the samples"):
        inspected(loss, 1, data=TensorDataset(tokens))


def test_samples_that_collate_drops_are_named():
    def collate(samples):
        return torch.utils.data.default_collate([sample for sample in samples if sample[1] != 3] or samples[:1])

    with pytest.raises(motley.Error, match=r"of \d+ samples collate_fn left \d+"):
        inspected(cases.cross_entropy, 2, collate=collate)


def test_a_layer_of_ones_own_that_normalises_over_the_batch_is_named():
    class Own(nn.Module):
        def forward(self, x):
            return (x - x.mean(0)) / (x.std(0) + 1) if self.training else x

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(cases.FEATURES, 16), Own(), nn.Linear(16, cases.CLASSES))
    with pytest.raises(motley.Error, match="in training mode the samples of a batch see each other"):
        inspected(cases.cross_entropy, 1, model)


def test_batch_norm_is_no_reason():
    for norm in (nn.BatchNorm1d(16), nn.BatchNorm1d(16, track_running_stats=False)):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(cases.FEATURES, 16), norm, nn.Linear(16, cases.CLASSES))
        assert inspected(cases.cross_entropy, 1, model).mixes
        with pytest.raises(motley.Error, match="not a mean over the samples"):
            inspected(class_weights, 1, model)


def test_a_sample_alone_in_its_group_is_named():
    def tried(size, batch, drop_last=False, norm=nn.BatchNorm1d(16)):
        model = nn.Sequential(nn.Linear(cases.FEATURES, 16), norm, nn.Linear(16, cases.CLASSES))
        loader = DataLoader(cases.classes(size, 1), batch, shuffle=True, drop_last=drop_last)
        _inspect.inspect(lambda each: cases.cross_entropy(model, each), model, _data.BatchSource(loader, "train_loader"), "fp32", True, {})

    for size, batch in ((130, 65), (97, 96)):
        with pytest.raises(motley.Error, match="alone in its group"):
            tried(size, batch)
        tried(size, batch, norm=nn.LayerNorm(16))
    tried(97, 96, drop_last=True)


def test_a_gradient_of_zero_says_nothing():
    def far(model, batch):
        return functional.relu(model(batch[0]).square().sum() * 0 - 1)

    assert "gradient is zero there" in inspected(far, 1).line


def test_an_operation_without_float64_is_told():
    class Narrow(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            if x.dtype != torch.float32:
                raise NotImplementedError("narrow is not implemented for 'Double'")
            return x * 2

        @staticmethod
        def backward(context, gradient):
            return gradient * 2

    def loss(model, batch):
        return functional.cross_entropy(Narrow.apply(model(batch[0])), batch[1])

    assert "float32, for want of float64 (NotImplementedError" in inspected(loss, 1).line

    def none(model, batch):
        return class_weights(lambda x: Narrow.apply(model(x)), batch)

    with pytest.raises(motley.Error, match="not a mean over the samples"):
        inspected(none, 1)


def test_a_large_model_is_tried_on_no_more_samples_than_a_small_one():
    def tried(width):
        """How many, with eight layers so wide."""
        torch.manual_seed(1)
        layers = [layer for _ in range(8) for layer in (nn.Linear(width, width), nn.ReLU())]
        model = nn.Sequential(nn.Linear(cases.FEATURES, width), *layers, nn.Linear(width, cases.CLASSES))
        source = _data.BatchSource(DataLoader(cases.classes(SIZE, 1), BATCH, shuffle=True), "train_loader")
        sizes = []

        def counted(batch):
            sizes.append(len(batch[0]))
            return cases.cross_entropy(model, batch)

        _inspect.inspect(counted, model, source, "fp32", True, {"loss": cases.cross_entropy})
        return sum(sizes)

    assert 0 < tried(1120) <= tried(8) < 200


def test_a_layer_that_is_unused_in_some_steps_is_named_or_counts_as_zero(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Sometimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(12, 5), nn.Linear(12, 5)

    def loss(both, batch, step):
        output = both.first(batch[0]) + (both.second(batch[0]) if step < 7 else 0)
        return functional.cross_entropy(output, batch[1])

    def ran(**options):
        torch.manual_seed(1)
        model = Sometimes()
        loader = DataLoader(cases.classes(300, 2), 60, shuffle=True)
        return list(motley.Run(model, loss, loader, torch.optim.AdamW(model.parameters(), lr=0.01), **options).epochs(3))

    with pytest.raises(motley.Error, match="second.* got no gradient in this step"):
        ran()
    assert len(ran(unused="zero")) == 3


def test_random_numbers_that_come_later_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def loss(model, batch, epoch):
        x, y = batch
        return functional.cross_entropy(model(x + 0.1 * torch.randn_like(x) if epoch > 1 else x), y)

    model = model_of(1)
    run = motley.Run(model, loss, DataLoader(cases.classes(300, 2), 60, shuffle=True), torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(motley.Error, match="draws random numbers now, and drew none"):
        list(run.epochs(3))
