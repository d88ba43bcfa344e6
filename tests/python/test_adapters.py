"""Lightning modules and models of transformers, as far as a run sees them: the losses of a plain loop, or a refusal by name."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader

import adapted
import cases
import motley.hf
import motley.lightning
import plain
from conftest import train
from motley._trials import _overridden
from test_parity import epochs_of, loop


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", sorted(adapted.CASES))
def test_an_adapted_model_follows_the_plain_loop(motley, name, workers):
    case = adapted.make(name)
    losses, tested = loop(case)
    program = train(motley, "adapted.py", name, workers=workers)
    assert plain.worst_loss(program.losses(), losses) <= (1e-6 if workers == 1 else 1e-5)
    epochs = epochs_of(program)
    if name.startswith("following"):
        assert len({epoch["learning_rate"] for epoch in epochs}) > 1
    for epoch, expected in zip(epochs, tested, strict=True):
        expected = {"val_acc" if key == "accuracy" else key: value for key, value in expected.items()}
        assert {key: epoch[key] for key in expected} == pytest.approx(expected, rel=1e-4)
    motley.audit("run")


# --- modules -------------------------------------------------------------------------------------------------------------------


def loaders():
    return DataLoader(cases.classes(60, 2), 20, shuffle=True), DataLoader(cases.classes(30, 3), 20)


def refused(module, *remedy, **options):
    """What a run says of the module; it must say all of `remedy`."""
    with pytest.raises(motley.Error) as error:
        motley.lightning.Run(module, *loaders(), **options)
    assert error.value.hint and all(word in str(error.value) for word in remedy), error.value
    return str(error.value)


class Simple(adapted.LightningModule):
    """optimizers: what configure_optimizers gives."""

    def __init__(self, optimizers=None):
        super().__init__()
        self.net = cases.mlp()
        self.optimizers_of = optimizers or (lambda parameters: torch.optim.SGD(parameters, lr=0.1))

    def training_step(self, batch, batch_idx):
        return functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return self.optimizers_of(list(self.parameters()))


def with_methods(**methods):
    return type("Own", (Simple,), methods)()


@pytest.mark.parametrize("hook", sorted(_overridden.HOOKS))
def test_hooks_that_nobody_would_call_are_refused(hook):
    said = refused(with_methods(**{hook: lambda self, *_: None}), f"Own.{hook}", "a Trainer would call it")
    assert _overridden.HOOKS[hook] in said


def test_hooks_of_lightning_itself_are_not_the_users():
    class Library(adapted.LightningModule):
        def on_before_backward(self, loss):
            pass

    Library.__module__ = "lightning.pytorch.core.module"
    module = type("Own", (Simple, Library), {})()
    assert not _overridden.has(module, "on_before_backward") and not _overridden.has(module, "optimizer_step")
    motley.lightning.Run(module, *loaders())


@pytest.mark.parametrize("attribute", sorted(_overridden.ATTRIBUTES))
@pytest.mark.parametrize("where", ["training_step", "helper", "nested", "configure_optimizers"])
def test_what_only_a_trainer_knows_is_refused(attribute, where):
    lines = {"training_step": f"def training_step(self, batch, batch_idx): return self.{attribute}",
             "helper": f"def training_step(self, batch, batch_idx): return self.helper()\ndef helper(me): return me.{attribute}",
             "nested": f"def training_step(self, batch, batch_idx): return [each(self) for each in [lambda _: self.{attribute}(1)]]",
             "configure_optimizers": f"def configure_optimizers(self): return self.{attribute}.steps"}
    methods = {}
    exec(lines[where], {}, methods)
    refused(with_methods(**methods), f"self.{attribute}", "only a Trainer knows", _overridden.ATTRIBUTES[attribute])


def test_attributes_of_ones_own_by_the_same_name_are_fine():
    def training_step(self, batch, batch_idx):
        return functional.cross_entropy(self.net(batch[0]), batch[1]) * self.current_epoch

    module = type("Own", (Simple,), {"training_step": training_step, "current_epoch": 1.0})()
    _overridden.check(module)


def looks(self, batch, batch_idx):
    if batch[1].sum() < 0 and batch_idx % 100 == 0:
        return None
    return functional.cross_entropy(self.net(batch[0]), batch[1])


def looks_later(self, batch, number):
    return self.helper(batch, number)


@pytest.mark.parametrize("methods", [
    {"training_step": looks},
    {"validation_step": looks},
    {"training_step": looks_later, "helper": looks},
    {"training_step": lambda self, batch, number: [number == 0 for _ in batch]},
])
def test_the_number_of_a_batch_is_refused(methods):
    refused(with_methods(**methods), "looks at", "a batch has none")


def test_the_number_of_a_batch_is_refused_where_it_is_used():
    for use in (lambda i: i % 2, lambda i: 3 * i, lambda i: i == 0, lambda i: f"{i}", lambda i: bool(i), lambda i: {i}, lambda i: [1][i],
                lambda i: i > 3, lambda i: torch.ones(2) * i):
        with pytest.raises(motley.Error, match="batch_idx"):
            use(_overridden.INDEX)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def plateau(optimizer, **options):
    return lr_scheduler.ReduceLROnPlateau(optimizer, **options)


def scheduled(make, **about):
    def configured(parameters):
        optimizer = sgd(parameters)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": make(optimizer), **about}}

    return configured


def of_step_lr(optimizer):
    return lr_scheduler.StepLR(optimizer, 2)


FORMS = {
    "optimizer": (sgd, None),
    "list": (lambda p: [sgd(p)], None),
    "tuple": (lambda p: (sgd(p),), None),
    "lists": (lambda p: ([o := sgd(p)], [of_step_lr(o)]), "epoch"),
    "lists with a dictionary": (lambda p: ([o := sgd(p)], [{"scheduler": of_step_lr(o), "interval": "step"}]), "step"),
    "no schedulers": (lambda p: ([sgd(p)], []), None),
    "one scheduler": (lambda p: ([o := sgd(p)], of_step_lr(o)), "epoch"),
    "dictionary": (lambda p: {"optimizer": sgd(p)}, None),
    "dictionary with a scheduler": (lambda p: {"optimizer": (o := sgd(p)), "lr_scheduler": of_step_lr(o)}, "epoch"),
    "dictionaries": (scheduled(of_step_lr, interval="step", frequency=1, name="rate", strict=True), "step"),
    "list of a dictionary": (lambda p: [scheduled(of_step_lr, interval="epoch")(p)], "epoch"),
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_optimizers_in_every_form(form):
    make, every = FORMS[form]
    module = Simple(make)
    chosen = motley.lightning._chosen(module.configure_optimizers())
    assert isinstance(chosen.optimizer, torch.optim.SGD) and chosen.every == every
    assert chosen.schedule is None if every is None else chosen.schedule.optimizer is chosen.optimizer
    motley.lightning.Run(module, *loaders())


WRONG = {
    "two": (lambda p: [sgd(p), sgd(p)], "expected one optimizer, found 2", "run.leases()"),
    "two in dictionaries": (lambda p: [{"optimizer": sgd(p)}] * 2, "expected one optimizer, found 2", "parameter groups"),
    "two in lists": (lambda p: ([sgd(p), sgd(p)], []), "expected one optimizer, found 2", "parameter groups"),
    "none": (lambda p: None, "expected one optimizer, found none", "parameter groups"),
    "two schedulers": (lambda p: ([o := sgd(p)], [of_step_lr(o), of_step_lr(o)]), "expected one scheduler", "ChainedScheduler"),
    "frequency": (scheduled(of_step_lr, frequency=3), "frequency 3 of StepLR", "longer periods"),
    "interval": (scheduled(of_step_lr, interval="hour"), "interval 'hour'", '"interval": "epoch"'),
    "no scheduler": (lambda p: {"optimizer": sgd(p), "lr_scheduler": {"interval": "step"}}, 'no "scheduler"', '{"scheduler"'),
    "plateau of steps": (scheduled(plateau, interval="step", monitor="val_loss"), "interval 'step'", '"interval": "epoch"'),
    "no monitor": (scheduled(plateau), "without a monitor", '"monitor": "val_loss"'),
    "another monitor": (scheduled(plateau, monitor="train_loss"), "'train_loss', which validation_step does not log", "self.log('train"),
    "not a loss": (scheduled(plateau, monitor="val_acc"), "validation_step returns another number", "return what is logged"),
    "another that follows": (scheduled(of_step_lr, reduce_on_plateau=True, monitor="val_acc"), "no ReduceLROnPlateau", "run.set_lr()"),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_optimizers_that_a_run_does_not_have_are_refused(what):
    def validation_step(self, batch, batch_idx):
        self.log("val_acc", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())
        return self.training_step(batch, batch_idx)

    make, *said = WRONG[what]
    refused(type("Own", (Simple,), {"validation_step": validation_step})(make), "configure_optimizers", *said)


def test_modules_that_are_trained_otherwise_are_refused():
    manual, bptt, evaluating, own = (with_methods() for _ in range(4))
    manual.automatic_optimization = False
    refused(manual, "automatic_optimization", "run.leases()")
    bptt.truncated_bptt_steps = 2
    refused(bptt, "truncated_bptt_steps")
    refused(evaluating.eval(), "evaluation mode", "module.train()")
    own.training_step = lambda batch, batch_idx: None
    refused(own, "training_step", "in the class")
    wrapper = nn.Sequential(Simple())
    wrapper._orig_mod = wrapper[0]
    refused(wrapper, "compiled", "torch.compile(self.net)")
    refused(cases.mlp(), "training_step and configure_optimizers", "motley.Run(model, loss")
    for name in motley.lightning.TAKEN:
        refused(Simple(), name, "it comes from", **{name: None})


@pytest.mark.parametrize("arguments, wanted", [("self, batch, batch_idx, optimizer_idx", "optimizer_idx"), ("self, dataloader_iter",
                                                                                                            "dataloader_iter")])
def test_steps_that_want_something_else_are_refused(arguments, wanted):
    methods = {}
    exec(f"def training_step({arguments}): pass", {}, methods)
    refused(with_methods(**methods), f"training_step: it wants {wanted}", "def training_step(self, batch, batch_idx)")


@pytest.mark.parametrize("returned, said", [(None, "returned None"), ({"pred": 1}, "a dictionary without a loss")])
def test_a_step_without_a_loss_is_refused(returned, said):
    with pytest.raises(motley.Error, match=said):
        motley.lightning._loss_of(returned)


def logging(name, value, **options):
    return with_methods(validation_step=lambda self, batch, batch_idx: self.log(name, value(batch), **options))


def test_what_is_no_mean_over_samples_is_refused():
    refused(logging("spread", lambda batch: batch[0].std()), "'spread', which is not a mean", "of 8", "score=")
    refused(logging("right", lambda batch: (batch[1] == 1).sum()), "'right', which is not a mean")
    refused(logging("most", lambda batch: batch[0].max(), reduce_fx="max"), "reduce_fx=max", "self.log('most'")
    refused(logging("tokens", lambda batch: 1.0, batch_size=3), "batch_size=3", "number of samples")
    refused(logging("metric", lambda batch: nn.Linear(1, 1)), "a Linear, expected a number", "argmax")
    refused(logging("vector", lambda batch: batch[0]), "a Tensor, expected a number")
    motley.lightning.Run(logging("mean", lambda batch: batch[0].mean(), batch_size=None, on_epoch=True), *loaders())


def test_several_validation_sets_are_refused():
    training, validation = loaders()
    with pytest.raises(motley.Error, match="val_loader: expected one"):
        motley.lightning.Run(logging("mean", lambda batch: 1.0), training, [validation, validation])


def test_a_module_keeps_nothing_of_the_adapter():
    module = adapted.Classifier()
    before = dict(vars(module))
    motley.lightning.Run(module, *loaders())
    assert vars(module) == before and module.training and module.net.training
    pickle.loads(pickle.dumps(copy.deepcopy(module)))
    with pytest.raises(RuntimeError, match="not attached"):
        module.log("loss", 1.0)


def test_a_module_knows_its_device_while_it_computes():
    class Placed(Simple):
        _device = torch.device("meta")

        def __init__(self):
            super().__init__()
            self._device = torch.device("meta")

        def validation_step(self, batch, batch_idx):
            self.log("here", float(self._device == batch[0].device))

    module = Placed()
    run = motley.lightning.Run(module, *loaders())
    evaluated = run._test.fetch([0, 1, 2])
    assert run._parts.score(module, evaluated) == {"here": 3.0} and module._device == torch.device("meta")


def test_scores_may_be_added_to_what_is_logged():
    module = adapted.Classifier()
    run = motley.lightning.Run(module, *loaders(), score=lambda model, batch: {"count": len(batch[0])})
    evaluated = run._test.fetch(list(range(10)))
    module.eval()
    with torch.no_grad():
        right = (module(evaluated.batch[0]).argmax(1) == evaluated.batch[1]).sum()
        scores = run._parts.score(module, evaluated)
        loss = run._parts.call(evaluated)
    assert {name: float(value) for name, value in scores.items()} == pytest.approx({"val_acc": float(right), "count": 10})
    assert loss == pytest.approx(functional.cross_entropy(module(evaluated.batch[0]), evaluated.batch[1]).item())


# --- models that compute their loss ----------------------------------------------------------------------------------------------


def text_batch():
    return torch.utils.data.default_collate([adapted.Texts(6, 1)[i] for i in range(6)])


@pytest.mark.parametrize("kind, tokens", [(adapted.SmallForCausalLM, "shifted"), (adapted.SmallForMaskedLM, "labels"),
                                          (adapted.BartForCausalLM, "labels")])
def test_a_batch_weighs_as_much_as_it_has_labels(kind, tokens):
    model, batch = kind(), text_batch()
    mean, weight = motley.hf.loss(model, batch)
    labels = batch["labels"][:, 1:] if tokens == "shifted" else batch["labels"]
    assert mean == model(**batch).loss and weight == (labels != -100).sum()
    wrapped = nn.Module()
    wrapped.base_model, wrapped.forward = model, model.forward
    assert motley.hf.loss(wrapped, batch)[1] == weight
    assert motley.hf.Loss(tokens=tokens)(model, batch)[1] == weight
    assert motley.hf.Loss(tokens="samples")(model, batch) == mean


class Head(nn.Module):
    def forward(self, x, labels):
        return {"loss": (x.sum() * labels.sum()), "logits": x}


def test_labels_of_whole_samples():
    x = torch.ones(3, 2)
    mean, weight = motley.hf.loss(Head(), {"x": x, "labels": torch.tensor([1, -100, 2])})
    assert weight == 2
    assert isinstance(motley.hf.loss(Head(), {"x": x, "labels": torch.ones(3, 4)}), torch.Tensor)


@pytest.mark.parametrize("model, batch, said, remedy", [
    (adapted.Unknown(), text_batch(), "it is not known over what Unknown takes the mean", 'tokens="shifted"'),
    (adapted.SmallForCausalLM(), {"input_ids": torch.ones(2, 3)}, "has no labels, only input_ids", 'tokens="samples"'),
    (adapted.SmallForCausalLM(), [torch.ones(2, 3)], "found list", "dictionaries"),
    (cases.mlp(), {"input": torch.ones(2, cases.FEATURES), "labels": torch.ones(2)}, "without a loss", "AutoModelFor"),
], ids=["unknown", "no labels", "a list", "no loss"])
def test_models_of_another_kind_are_refused(model, batch, said, remedy):
    if isinstance(model, nn.Sequential):
        model.forward = lambda input, labels: input
    with pytest.raises(motley.Error) as error:
        motley.hf.loss(model, batch)
    assert said in str(error.value) and remedy in error.value.hint


def test_a_wrong_idea_of_the_tokens_is_refused():
    class OddForCausalLM(adapted.SmallForMaskedLM):
        pass

    with pytest.raises(motley.Error, match="mean over other tokens") as error:
        motley.hf.loss(OddForCausalLM().double(), text_batch())
    assert error.value.hint == 'motley.hf.Loss(tokens="labels")'
    with pytest.raises(motley.Error, match="tokens: expected one of"):
        motley.hf.Loss(tokens="words")
