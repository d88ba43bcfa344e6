"""What a script meets where it cannot go on is the true reason, and what can be trained is not refused for another."""

import math

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import cases
import motley
import plain
from conftest import SCRIPTS
from motley import _numbers
from motley._models import _parts
from motley._runs import _head
from motley._samples import _ahead, _data
from motley._trials import _inspect, _loss

SIZE, BATCH = 192, 48


@pytest.fixture(autouse=True)
def in_its_own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run_of(model, loss=cases.cross_entropy, batch=BATCH, optimizer=None, **options):
    loader = DataLoader(cases.classes(SIZE, 1), batch)
    return motley.Run(model, loss, loader, optimizer or torch.optim.SGD(model.parameters(), lr=0.1), **options)


def plain_losses(model, loss, epochs=2, clip_norm=None):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(epochs):
        for batch in DataLoader(cases.classes(SIZE, 1), BATCH):
            optimizer.zero_grad()
            value = loss(model, batch)
            value.backward()
            if clip_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
            optimizer.step()
            losses.append(value.item())
    return losses


def made(what, *arguments):
    torch.manual_seed(2)
    return what(*arguments)


# --- numbers ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [2, 2.0, numpy.int64(2), numpy.float32(2), torch.tensor(2), torch.tensor(2.0)])
def test_a_whole_number_may_be_of_any_type(value):
    found = _numbers.count("epochs", value, "run.epochs(10)")
    assert found == 2 and type(found) is int


@pytest.mark.parametrize("value", [2.5, 0, -1, math.nan, math.inf, None, "2", [2], 1 << 41])
def test_what_is_no_count_is_refused_by_name(value):
    with pytest.raises(motley.Error, match="^epochs: expected a whole number, at least 1, found") as raised:
        run_of(cases.mlp()).epochs(value)
    assert raised.value.hint == "run.epochs(10)"


def test_every_seed_of_torch_is_one_here():
    low, high = -(1 << 63), (1 << 64) - 1
    seeds = [low, -1, 0, 1, 1 << 40, (1 << 40) + 1, 1 << 63, high]
    found = [_numbers.seed(each) for each in seeds]
    assert found[2:5] == [0, 1, 1 << 40] and len(set(found)) == len(seeds) and all(0 <= each <= 1 << 40 for each in found)
    for each in (low - 1, high + 1, 0.5):
        with pytest.raises(motley.Error, match=r"seed: expected a whole number, from -2\*\*63 to 2\*\*64 - 1"):
            run_of(cases.mlp(), seed=each)


@pytest.mark.parametrize("value", [-1.0, math.nan, "1"])
def test_no_norm_is_refused_by_name(value):
    with pytest.raises(motley.Error, match="clip_norm: expected a number, at least 0"):
        run_of(cases.mlp(), clip_norm=value)


def test_a_norm_without_end_clips_nothing_and_is_told():
    run, norms = run_of(made(cases.mlp), clip_norm=math.inf, callbacks=[]), []
    run._told._callbacks = [type("Seen", (), {"on_step": lambda self, step: norms.append(step.gradient_norm)})()]
    found = [epoch.loss for epoch in run.epochs(2)]
    expected = plain_losses(made(cases.mlp), cases.cross_entropy, clip_norm=math.inf)
    per_epoch = len(expected) // 2
    assert found == pytest.approx([sum(expected[:per_epoch]) / per_epoch, sum(expected[per_epoch:]) / per_epoch], rel=1e-5)
    assert all(norm > 0 for norm in norms)


def test_words_of_a_run_file_are_toml():
    tomllib = pytest.importorskip("tomllib")
    words = ["--name", "a \"b\"\n", "größe 漢 😀", "\x7f\x00\\"]
    sections = {"model": {"arguments": words}, "train": {"inf": math.inf, "minus": -math.inf, "whole": 3, "yes": True}}
    assert tomllib.loads(_head.config_text(sections)) == sections
    with pytest.raises(motley.Error, match="not UTF-8"):
        _head.config_text({"model": {"arguments": ["\udcff"]}})


# --- models that take one size, or one memory -------------------------------------------------------------------------------------


def exported():
    return torch.export.export(cases.mlp(), (torch.zeros(BATCH, cases.FEATURES),)).module()


def single_values():
    return nn.Sequential(nn.Linear(cases.FEATURES, 16), nn.ReLU(), nn.GroupNorm(16, 16), nn.Linear(16, cases.CLASSES))


class Reshaped(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = cases.mlp()

    def forward(self, x):
        return self.inner(x).reshape(BATCH, cases.CLASSES)


@pytest.mark.parametrize("what", [exported, single_values, Reshaped])
def test_a_model_of_one_size_of_batch_is_refused_by_name(what):
    with pytest.raises(motley.Error, match=f"the loss takes a batch of {BATCH} samples, and of fewer it raises") as raised:
        list(run_of(made(what)).epochs(1))
    assert "len(x)" in raised.value.hint


def test_a_model_exported_for_any_size_is_taken():
    batch = torch.export.Dim("batch", min=1)
    model = torch.export.export(made(cases.mlp), (torch.zeros(BATCH, cases.FEATURES),), dynamic_shapes=({0: batch},)).module()
    assert run_of(model).epochs(1).__next__().loss > 0


def test_an_exception_that_is_of_a_sample_is_not_blamed_on_the_size():
    def loss(model, batch):
        if bool((batch[1] == cases.CLASSES - 1).any()):
            raise KeyError("no such class")
        return cases.cross_entropy(model, batch)

    with pytest.raises((KeyError, motley.Error), match="no such class") as raised:  # in the trial, or where that has no time for it, later
        list(run_of(cases.mlp(), loss).epochs(1))
    assert "takes a batch" not in str(raised.value)


def test_a_score_of_one_size_is_refused_by_name():
    def score(model, batch):
        return {"right": (model(batch[0]).argmax(1).reshape(BATCH) == batch[1]).sum()}

    with pytest.raises(motley.Error, match="the score takes a batch of 48 samples"):
        list(run_of(cases.mlp(), test=DataLoader(cases.classes(SIZE, 1), BATCH), score=score).epochs(1))


@pytest.mark.parametrize("value, said", [(torch.zeros(3), r"right is a tensor of \[3\]"), ([1, 2], "right is list"),
                                         (None, "right is NoneType")])
def test_a_score_that_is_no_number_is_refused_by_name(value, said):
    with pytest.raises(motley.Error, match=f"score: {said}"):
        _loss.score_of("right", value)
    with pytest.raises(motley.Error, match=f"score: {said}"):
        list(run_of(cases.mlp(), test=DataLoader(cases.classes(SIZE, 1), BATCH), score=lambda model, batch: {"right": value}).epochs(1))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(cases.FEATURES, 8, bias=False), nn.Linear(cases.FEATURES, 8, bias=False)
        self.other.weight = self.one.weight
        self.out = nn.Linear(16, cases.CLASSES)

    def forward(self, x):
        return self.out(torch.cat([self.one(x).relu(), self.other(-x).relu()], 1))


def assigned(model):
    model.load_state_dict(model.state_dict(), assign=True)


def of_its_values(model):
    model.other.weight = nn.Parameter(model.one.weight.data)


def frozen(model):
    model.other.weight = nn.Parameter(model.one.weight.data, requires_grad=False)


def buffered(model):
    model.register_buffer("other_weight", model.one.weight.data[2:4])


@pytest.mark.parametrize("how", [assigned, of_its_values, frozen, buffered])
def test_two_tensors_in_one_memory_are_refused_by_name(how):
    model = made(Tied)
    how(model)
    with pytest.raises(motley.Error, match=r"one\.weight and other.weight are in the same memory|one\.weight and other_weight") as raised:
        list(run_of(model).epochs(1))
    assert "model.other" in raised.value.hint


def test_tensors_side_by_side_in_one_memory_are_apart():
    whole = torch.zeros(6, 4)
    model = nn.ParameterDict({"left": nn.Parameter(whole[:, :2]), "right": nn.Parameter(whole[:, 2:])})
    _parts.check_memory(model)
    model["row"] = nn.Parameter(whole[5])
    with pytest.raises(motley.Error, match="left and row"):
        _parts.check_memory(model)
    _parts.check_memory(made(Tied))


def test_a_tensor_that_a_file_of_weights_has_no_name_for_is_refused():
    model = nn.Sequential(nn.Linear(cases.FEATURES, cases.CLASSES))
    model.register_parameter("__metadata__", nn.Parameter(torch.zeros(1)))
    with pytest.raises(motley.Error, match="__metadata__"):
        list(run_of(model, lambda model, batch: cases.cross_entropy(model, batch) + model.get_parameter("__metadata__").sum()).epochs(1))


# --- what is trained, as torch does it --------------------------------------------------------------------------------------------


def normed(momentum):
    return nn.Sequential(nn.Linear(cases.FEATURES, 16), nn.BatchNorm1d(16, momentum=momentum), nn.ReLU(), nn.Linear(16, cases.CLASSES))


def test_averages_with_a_momentum_of_0_stay():
    model, before = made(normed, 0.0), made(normed, 0.0)
    source = _data.BatchSource(DataLoader(cases.classes(SIZE, 1), BATCH), "train_loader")
    found = _inspect.inspect(lambda batch: cases.cross_entropy(model, batch), model, source, "fp32", True, {"loss": cases.cross_entropy})
    assert found.changing == {"1.num_batches_tracked": 1} and found.mixes
    losses = [epoch.loss for epoch in run_of(model, batch=32).epochs(2)]
    optimizer, expected = torch.optim.SGD(before.parameters(), lr=0.1), []
    for _ in range(2):
        sums = 0.0
        for batch in DataLoader(cases.classes(SIZE, 1), 32):
            optimizer.zero_grad()
            value = cases.cross_entropy(before, batch)
            value.backward()
            optimizer.step()
            sums += value.item() / (SIZE // 32)
        expected.append(sums)
    assert losses == pytest.approx(expected, rel=1e-5)
    assert plain.worst_weights(model.state_dict(), before.state_dict()) <= 1e-4


def test_a_model_of_float32_trains_beside_another_default():
    def loss(model, batch):
        x = batch[0].float()
        return functional.cross_entropy(model(x), batch[1]) + torch.tensor(0.1) * model(x).pow(2).mean()

    torch.set_default_dtype(torch.float64)
    try:
        found = [epoch.loss for epoch in run_of(made(cases.mlp).float(), loss).epochs(2)]
        expected = plain_losses(made(cases.mlp).float(), loss)
    finally:
        torch.set_default_dtype(torch.float32)
    half = len(expected) // 2
    assert found == pytest.approx([sum(expected[:half]) / half, sum(expected[half:]) / half], rel=1e-5)


# --- exceptions of the script -----------------------------------------------------------------------------------------------------


class Broken(Exception):
    """Cannot be made from what pickle keeps of it."""

    def __init__(self, path, why):
        super().__init__(f"{path}: {why}")


class Files(Dataset):
    def __init__(self, sample):
        self.sample = sample

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.sample(index)


class Unreadable:
    def __reduce__(self):
        return Broken, ("alone",)


def _raise(error):
    raise error


def readers(sample, **options):
    source = _data.BatchSource(DataLoader(Files(sample), 8, num_workers=1, **options), "train_loader")
    return _ahead.Readers(source.loader, source.read, "train_loader", 8)


@pytest.mark.parametrize("sample, said", [
    (lambda index: _raise(Broken(f"img{index}.png", "cut off")), "Broken: img3.png: cut off"),
    (lambda index: _raise(KeyError("label")), "KeyError: 'label'"),
    (lambda index: _raise(SystemExit(3)), "SystemExit: 3"),
    (lambda index: Unreadable(), "Broken"),
    (lambda index: (lambda: index), "pickle"),
], ids=["own", "key", "exit", "unreadable", "function"])
def test_what_a_process_that_reads_samples_raised_is_told(sample, said):
    there = readers(sample)
    try:
        with pytest.raises(motley.Error) as raised:
            there.result(there.read([3], None))
        assert said in raised.value.args[0] and raised.value.args[0].startswith("train_loader: "), raised.value
        if not raised.value.hint:
            assert "Traceback" in raised.value.args[0] and "test_reasons.py" in raised.value.args[0]
    finally:
        there.close()


def test_what_worker_init_fn_raised_is_told():
    with pytest.raises(motley.Error, match="Broken: worker: no such disk"):
        readers(lambda index: index, worker_init_fn=lambda number: _raise(Broken("worker", "no such disk")))


HERE = ["--run", "run", "--listen", "127.0.0.1:0", "--device", "cpu", "--threads", "1", "--token-file", "token"]
REASONS = str(SCRIPTS / "reasons.py")


def test_when_all_machines_raise_the_run_ends_with_the_reason(motley):
    head = motley.start("train", REASONS, *HERE, "--set", "train.min_workers=2", "--set", "train.shares=[1,1]", "everywhere")
    joined = motley.start("join", "--token-file", "token", REASONS, "--device", "cpu", "--threads", "1", "--name", "other", "everywhere")
    assert (head.end(), joined.end()) == (2, 2), head.story()
    for program in (head, joined):
        error = program.error()
        assert error["code"] == "input" and "Broken: img7.png: cut off" in error["message"] and "reasons.py" in error["message"], error


def test_a_machine_comes_to_the_run_after_one_that_was_refused(motley):
    head = motley.start("train", REASONS, *HERE, "--set", "train.min_workers=2", "--set", "train.shares=[1,1]", "probing")
    joined = motley.start("join", "--token-file", "token", REASONS, "--device", "cpu", "--threads", "1", "--name", "other", "probing")
    assert (head.end(), joined.end()) == (0, 0), f"{head.story()}\n{joined.story()}"
    assert any(len(step["workers"]) == 2 for step in head.named("step"))
    for program in (head, joined):
        assert "refused: train.global_batch" in "\n".join(program.text), program.story()
    assert head.named("run")[0]["directory"].endswith("run")
    again = motley.run("train", REASONS, *HERE, "--resume", "probing")
    assert again.process.returncode == 0 and not again.named("step"), again.story()
    assert "is over: the model has what it left" in "\n".join(again.text) or again.named("done"), again.story()
