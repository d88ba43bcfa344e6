"""adapted.py NAME: trains one of CASES by an adapter and prints its epochs as JSON on standard error."""

import json
import sys
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Dataset

import cases
import motley.hf
import motley.lightning

LENGTH, WORDS = 9, 17


class LightningModule(nn.Module):
    """What Lightning's own does, as far as it matters here."""

    automatic_optimization = True
    _trainer = None

    @property
    def trainer(self):
        if self._trainer is None:
            raise RuntimeError(f"{type(self).__name__} is not attached to a Trainer")
        return self._trainer

    @property
    def current_epoch(self):
        return self._trainer.current_epoch if self._trainer else 0

    @property
    def global_step(self):
        return self._trainer.global_step if self._trainer else 0

    def log(self, name, value, **options):
        self.trainer.logged[name] = value

    def log_dict(self, values, **options):
        for name, value in values.items():
            self.log(name, value, **options)

    def training_step(self, *arguments):
        raise NotImplementedError

    def validation_step(self, *arguments):
        raise NotImplementedError

    def configure_optimizers(self):
        raise NotImplementedError

    def setup(self, stage):
        pass

    def configure_model(self):
        pass

    def on_after_backward(self):
        pass

    def on_train_epoch_end(self):
        pass

    def optimizer_step(self, epoch, batch_idx, optimizer, closure=None):
        optimizer.step(closure)


class Plain(LightningModule):
    """Shares a step between training and evaluation, and passes batch_idx on."""

    def __init__(self):
        super().__init__()
        self.net = cases.mlp()

    def forward(self, x):
        return self.net(x)

    def shared_step(self, batch, batch_idx, stage):
        x, y = batch
        logits = self(x)
        loss = functional.cross_entropy(logits, y)
        self.log_dict({f"{stage}_loss": loss, f"{stage}_acc": (logits.argmax(1) == y).float().mean()}, prog_bar=True)
        return loss

    def training_step(self, batch, batch_idx):
        return {"loss": self.shared_step(batch, batch_idx, "train")}

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        schedule = lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=60)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Classifier(Plain):
    def validation_step(self, batch, batch_idx):
        self.shared_step(batch, batch_idx, "val")


class Untested(Plain):
    """No validation_step of its own, lists, a schedule by epochs, layers from setup()."""

    def __init__(self):
        LightningModule.__init__(self)

    def setup(self, stage):
        self.net = cases.mlp()

    def training_step(self, batch):
        return functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        return [optimizer], [lr_scheduler.StepLR(optimizer, 2, 0.5)]


class Following(Plain):
    """A learning rate that follows what is logged."""

    mode, followed = "max", "val_acc"

    def validation_step(self, batch, batch_idx):
        loss = self.shared_step(batch, batch_idx, "val")
        self.log("a", loss)
        self.log("val", loss)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        schedule = lr_scheduler.ReduceLROnPlateau(optimizer, mode=self.mode, factor=0.3, patience=0, threshold=0.1)
        return {"optimizer": optimizer, "lr_scheduler": schedule, "monitor": self.followed}


class FollowingLoss(Following):
    mode, followed = "min", "val"


class Weighted(Plain):
    """A mean over the weights of samples; asks for the epoch."""

    def training_step(self, batch, batch_idx, *, epoch=1):
        x, y = batch
        weights = (y + 1.0) / epoch
        return {"loss": (functional.cross_entropy(self(x), y, reduction="none") * weights).sum() / weights.sum(), "weight": weights.sum()}


def weighted(model, batch):
    x, y = batch
    return (functional.cross_entropy(model(x), y, reduction="none") * (y + 1.0)).sum() / (y + 1.0).sum(), (y + 1.0).sum()


class Texts(Dataset):
    """Texts of several lengths; half of them begin with a question that is not to be learnt."""

    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.words = torch.randint(1, WORDS, (size, LENGTH), generator=generator)
        self.lengths = torch.randint(3, LENGTH + 1, (size,), generator=generator).tolist()

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        place = torch.arange(LENGTH)
        labels = self.words[index].masked_fill((place >= self.lengths[index]) | (index % 2 == 0) & (place < 2), -100)
        return {"input_ids": self.words[index], "labels": labels}


class TextModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(is_encoder_decoder=False)
        self.embed, self.head = nn.Embedding(WORDS, 8), nn.Linear(8, WORDS)

    def forward(self, input_ids, labels=None):
        logits = self.head(torch.tanh(self.embed(input_ids)))
        return SimpleNamespace(loss=self.loss(logits, labels), logits=logits)


class SmallForCausalLM(TextModel):
    def loss(self, logits, labels):
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


class SmallForMaskedLM(TextModel):
    def loss(self, logits, labels):
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


class BartForCausalLM(SmallForMaskedLM):
    pass


class Unknown(TextModel):
    loss = SmallForMaskedLM.loss


def plain(model, optimizer, schedule=None, every="epoch", score=None, loss=cases.cross_entropy):
    return cases.Case(model, optimizer, loss, cases.classes(cases.SIZE, 2), cases.classes(cases.TEST, 3), score=score, schedule=schedule,
                      schedule_every=every)


def accuracy(name):
    return lambda model, batch: {name: (model(batch[0]).argmax(1) == batch[1]).sum()}


def classifier():
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return plain(model, optimizer, lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=60), "step", accuracy("val_acc"))


def untested():
    model = Untested()
    model.setup("fit")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return plain(model, optimizer, lr_scheduler.StepLR(optimizer, 2, 0.5))


def following():
    return _following(Following(), accuracy("accuracy"))


def following_loss():
    return _following(FollowingLoss(), None)


def _following(model, score):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, mode=model.mode, factor=0.3, patience=0, threshold=0.1)
    return plain(model, optimizer, schedule, score=score)


def weights():
    model = Weighted()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return plain(model, optimizer, lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=60), "step", loss=weighted)


def _texts(model):
    case = plain(model, torch.optim.AdamW(model.parameters(), lr=0.02), loss=lambda model, batch: model(**batch).loss)
    case.train, case.test = Texts(cases.SIZE, 6), Texts(cases.TEST, 7)
    return case


def causal():
    return _texts(SmallForCausalLM())


def masked():
    return _texts(SmallForMaskedLM())


def decoder():
    return _texts(BartForCausalLM())


CASES = {function.__name__: function for function in (classifier, untested, following, following_loss, weights, causal, masked, decoder)}


def make(name):
    torch.manual_seed(cases.SEED)
    return CASES[name]()


if __name__ == "__main__":
    case = make(sys.argv[1])
    train, test = DataLoader(case.train, case.batch, shuffle=True), DataLoader(case.test, 64)
    torch.manual_seed(cases.SEED)
    if isinstance(case.model, LightningModule):
        run = motley.lightning.Run(type(case.model)(), train, test, seed=cases.SEED)
    else:
        run = motley.Run(case.model, motley.hf.loss, train, case.optimizer, test=test, seed=cases.SEED)
    for epoch in run.epochs(case.epochs):
        told = {"loss": epoch.loss, "test_loss": epoch.test_loss, "learning_rate": epoch.learning_rate, **epoch.scores}
        sys.stderr.write(f"epoch {json.dumps(told)}\n")  # at once: the run writes there, too
