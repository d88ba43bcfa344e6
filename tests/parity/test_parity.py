"""The built-in models follow a plain PyTorch loop over the same samples, with one worker and with several."""

import pytest
import torch
from safetensors.torch import load_file

import plain
from program import checkpoint
from sample_order import sample_order

STEPS, BATCH, SEED = 100, 64, 1
SHARES = "train.shares=[5,3,2]"
NO_EVALUATION = 'data.test_uri=""'
RUNS = [(model, recipe, workers) for recipe in plain.OPTIMIZERS for model in plain.MODULES for workers in (1, 3)]
RUNS += [("fashion-cnn", "nesterov", 2), ("fashion-cnn", "adam", 2), ("mlp", "adamw", 2), ("mlp", "clip-warmup-cosine", 2)]


def settings_of(recipe, workers, *more):
    shares = [SHARES] if workers > 1 else []
    return [f"train.steps={STEPS}", f"train.global_batch={BATCH}", f"train.seed={SEED}", *recipe.settings, *shares, *more]


def initial_module(model, run):
    module = plain.MODULES[model]()
    module.load_state_dict(load_file(checkpoint(run, 0) / "model.safetensors"), strict=True)
    return module


def plain_loop(loops, model, name, run, data):
    """The plain loop from the run's own initial weights, which depend on nothing but model and seed."""
    module = initial_module(model, run)
    key = (model, name, len(data[0]))
    if key not in loops:
        initial = {name: value.clone() for name, value in module.state_dict().items()}
        picks = plain.batches(SEED, len(data[0]), BATCH, STEPS)
        loops[key] = (initial, plain.train(module, plain.recipe(model, name), data, picks))
    initial, loop = loops[key]
    for tensor, value in load_file(checkpoint(run, 0) / "model.safetensors").items():
        assert torch.equal(value, initial[tensor]), f"{tensor}: the initial weights differ between runs of one seed"
    return loop


def final_weights(run):
    return load_file(checkpoint(run, STEPS) / "model.safetensors")


def split_of(process):
    """The samples that each worker computed of a whole batch, as a set of tuples."""
    return {tuple(sorted(part["samples"] for part in event["workers"])) for event in process.of("step") if event["samples"] == BATCH}


@pytest.mark.parametrize("model, name, workers", RUNS, ids=lambda value: str(value))
def test_follows_the_plain_loop(motley, fashion, loops, measure, tmp_path, model, name, workers):
    recipe, run = plain.recipe(model, name), tmp_path / "run"
    process = motley.train(run, model, workers, settings_of(recipe, workers, NO_EVALUATION))
    loop = plain_loop(loops, model, name, run, fashion["train"])

    assert motley.order(run, 0) == sample_order(SEED, 0, 60000, range(STEPS * BATCH)).tolist()
    assert motley.audit(run)["samples"] == STEPS * BATCH
    if workers > 1:
        assert all(len(split) == workers and len(set(split)) > 1 for split in split_of(process)), "expected uneven leases"
    if recipe.clip:
        assert 0 < loop.clipped < STEPS, "expected clipping to act at some steps and not at others"
    measure("loss", plain.worst_loss(process.losses(), loop.losses), 1e-6 if workers == 1 else 1e-5)
    measure("weights", plain.worst_weights(final_weights(run), loop.module.state_dict()), 1e-4)


@pytest.mark.parametrize("name, rate", [("sgd", 0.1), ("nesterov", 0.02)])
def test_the_same_split_at_a_fast_rate(motley, fashion, measure, tmp_path, name, rate):
    """Against a loop that sums a batch in the same parts in the same order, no rounding differs that chaos could grow."""
    recipe, run = plain.recipe("fashion-cnn", name, rate), tmp_path / "run"
    process = motley.train(run, "fashion-cnn", 3, settings_of(recipe, 3, NO_EVALUATION))
    (sizes,) = {tuple(part["samples"] for part in event["workers"]) for event in process.of("step")}
    picks = plain.batches(SEED, 60000, BATCH, STEPS)
    losses = plain.train_in_parts(initial_module("fashion-cnn", run), recipe, fashion["train"], picks, list(sizes))
    measure("loss", plain.worst_loss(process.losses(), losses), 1e-6)


def test_micro_batches_add_up_to_the_batch(motley, fashion, loops, measure, tmp_path):
    run = tmp_path / "run"
    process = motley.train(run, "mlp", 1, settings_of(plain.recipe("mlp", "nesterov"), 1, NO_EVALUATION, "train.micro_batch=24"))
    loop = plain_loop(loops, "mlp", "nesterov", run, fashion["train"])
    measure("loss", plain.worst_loss(process.losses(), loop.losses), 1e-5)


@pytest.mark.parametrize("workers", [1, 3])
def test_epochs_with_a_short_last_batch(motley, fashion, small_fashion, measure, tmp_path, workers):
    """1,000 samples in batches of 96: ten whole ones and one of 40; batches that are no power of two round everywhere."""
    batch, steps, per_epoch = 96, 29, 11
    recipe, run = plain.recipe("mlp", "nesterov"), tmp_path / "run"
    settings = [f"train.steps={steps}", f"train.global_batch={batch}", f"train.seed={SEED}", *recipe.settings]
    settings += [f'data.uri="{small_fashion}"', f'data.test_uri="{small_fashion}"'] + ([SHARES] if workers > 1 else [])
    process = motley.train(run, "mlp", workers, settings)
    data = tuple(part[:1000] for part in fashion["train"])
    loop = plain.train(initial_module("mlp", run), recipe, data, plain.batches(SEED, 1000, batch, steps))

    for epoch in range(3):
        size = 1000 if epoch < 2 else (steps - 2 * per_epoch) * batch
        assert motley.order(run, epoch) == sample_order(SEED, epoch, 1000, range(size)).tolist()
        assert epoch == 2 or sorted(motley.order(run, epoch)) == list(range(1000))
    audit = motley.audit(run)
    assert (audit["epochs"], audit["samples"]) == (3, 2000 + (steps - 2 * per_epoch) * batch)
    assert [event["samples"] for event in process.of("step")][10] == 40
    assert [event["step"] for event in process.of("eval")] == [11, 22, 29]
    measure("loss", plain.worst_loss(process.losses(), loop.losses), 1e-6 if workers == 1 else 1e-5)


@pytest.fixture(scope="module", params=list(plain.MODULES))
def trained(request, motley, tmp_path_factory):
    """A finished run of each model that was evaluated on the whole test set: (model, run, process)."""
    run = tmp_path_factory.mktemp(request.param) / "run"
    process = motley.train(run, request.param, 2, settings_of(plain.recipe(request.param, "adam"), 2))
    return request.param, run, process


def test_final_weights_give_the_reported_accuracy(trained, fashion, measure):
    model, run, process = trained
    module = plain.MODULES[model]()
    module.load_state_dict(load_file(checkpoint(run, STEPS) / "model.safetensors"), strict=True)
    x, y = fashion["test"]
    output = plain.outputs(module, x)
    correct = int((output.argmax(1) == y).sum())
    last, done = process.of("eval")[-1], process.of("done")[-1]
    assert (last["step"], last["samples"]) == (STEPS, 10000)
    assert round(last["accuracy"] * last["samples"]) == correct
    assert done["accuracy"] == last["accuracy"]
    assert correct > 7000, "expected a model that has learned something"
    loss = torch.nn.functional.cross_entropy(output.double(), y).item()
    measure("loss of the evaluation", abs(last["loss"] - loss) / loss, 1e-6)


def test_exports_load_in_torch(trained, motley, fashion, measure, tmp_path):
    model, run, _ = trained
    event = motley.export(run, tmp_path / "out.safetensors")
    assert event["step"] == STEPS
    weights = load_file(tmp_path / "out.safetensors")
    module = plain.MODULES[model]()
    module.load_state_dict(weights, strict=True)
    assert all(torch.equal(weights[name], value) for name, value in final_weights(run).items())

    motley.export(run, tmp_path / "out.pt")
    script = torch.jit.load(tmp_path / "out.pt")
    assert list(script.state_dict()) == list(module.state_dict())
    x = fashion["test"][0][:512]
    expected, found = plain.outputs(module, x), plain.outputs(script, x)
    measure("outputs", ((found - expected).abs().max() / expected.abs().max()).item(), 1e-6)

    motley.export(checkpoint(run, 0), tmp_path / "first.pt")
    first = plain.outputs(torch.jit.load(tmp_path / "first.pt"), x)
    measure("first outputs", (first - plain.outputs(initial_module(model, run), x)).abs().max().item(), 1e-6)
