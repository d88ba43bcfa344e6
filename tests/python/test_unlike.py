"""Samples that a loss leaves out, or weighs otherwise, are found though they are few: in arrays, else by reading for a while."""

import pytest
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

import cases
import motley
from motley._samples import _data, _unlike
from motley._trials import _inspect
from test_split import BATCH, model_of


def test_one_sample_unlike_all_others_hides_nothing():
    """A loss leaves it out, or weighs it otherwise, and a few samples from anywhere lack it."""
    size = 2000
    x, y = cases.classes(size, 2).tensors
    ignored, seldom, masked, wanted = y.clone(), y % 3, (y % 3)[:, None].repeat(1, 4), torch.randn(size, 4)
    ignored[1217], seldom[1217], masked[1217, 2], wanted[1217, 2] = -100, 4, 255, torch.nan

    def of_masks(model, batch):
        return functional.cross_entropy(model(batch[0])[:, :, None].expand(-1, -1, 4), batch[1], ignore_index=255)

    def of_known(model, batch):
        known = ~batch[1].isnan()
        return (model(batch[0])[:, :4][known] - batch[1][known]).square().mean()

    class Listed(Dataset):
        def __init__(self):
            self.targets = ignored.tolist()

        def __len__(self):
            return size

        def __getitem__(self, number):
            return x[number], self.targets[number]

    def class_weighted(model, batch):
        return functional.cross_entropy(model(batch[0]), batch[1], torch.tensor([1.0, 1.0, 1.0, 1.0, 9.0]))

    def tried(loss, data, sampler=None):
        model = model_of(1)
        source = _data.BatchSource(DataLoader(data, BATCH, sampler=sampler), "train_loader")
        _inspect.inspect(lambda batch: loss(model, batch), model, source, "fp32", True, {"loss": loss})

    whole = TensorDataset(x, ignored)
    for loss, data in ((cases.cross_entropy, whole), (cases.cross_entropy, Listed()), (class_weighted, TensorDataset(x, seldom)),
                       (of_masks, TensorDataset(x, masked)), (of_known, TensorDataset(x, wanted))):
        with pytest.raises(motley.Error, match="not a mean over the samples"):
            tried(loss, data)
    tried(lambda model, batch: (cases.cross_entropy(model, batch), (batch[1] >= 0).sum()), whole)
    others = [number for number in range(size) if number != 1217]
    tried(cases.cross_entropy, Subset(whole, others))
    tried(cases.cross_entropy, whole, SubsetRandomSampler(others))
    tried(cases.cross_entropy, whole, WeightedRandomSampler((ignored >= 0).double(), size))


class Read(Dataset):
    """Samples that only __getitem__ has; `kind`: how it gives labels."""

    def __init__(self, samples, kind=lambda label: label):
        self._samples, self._kind, self.reads = {"of": samples}, kind, 0

    def __len__(self):
        return len(self._samples["of"])

    def __getitem__(self, number):
        self.reads += 1
        x, y = self._samples["of"][number]
        return x, self._kind(y)


@pytest.mark.parametrize("kind", [lambda label: label, int, lambda label: label.numpy()])
def test_a_seldom_label_that_is_only_read_hides_nothing(kind, monkeypatch):
    monkeypatch.setattr(_unlike, "LOOK_S", 60)
    x, y = cases.classes(2000, 2).tensors
    ignored = y.clone()
    ignored[1217] = -100
    model, before = model_of(1), torch.random.get_rng_state()
    data = Read(TensorDataset(x, ignored), kind)
    source = _data.BatchSource(DataLoader(data, BATCH), "train_loader")
    with pytest.raises(motley.Error, match="not a mean over the samples"):
        _inspect.inspect(lambda batch: cases.cross_entropy(model, batch), model, source, "fp32", True, {"loss": cases.cross_entropy})
    assert torch.equal(torch.random.get_rng_state(), before)


def test_samples_are_read_for_a_while_and_where_no_array_has_labels(monkeypatch):
    x, y = cases.classes(2000, 2).tensors
    data = Read(TensorDataset(x, y))
    source = _data.BatchSource(DataLoader(data, BATCH), "train_loader")
    monkeypatch.setattr(_unlike, "LOOK_S", 0.0)
    assert source.unlike([1, 2]) == [] and data.reads <= 1
    monkeypatch.setattr(_unlike, "LOOK_S", 60)
    source.unlike([1, 2])
    assert 2000 <= data.reads <= 2003
    data.targets, data.reads = y, 0
    source.unlike([1, 2])
    assert data.reads == 0
