"""Models that compute their own loss, as those of Hugging Face's transformers do: `motley.hf.loss` is the loss of a run.

    run = motley.Run(model, motley.hf.loss, train_loader, torch.optim.AdamW(model.parameters(), lr=5e-5))

Their loss is a mean over the labels that count, so a batch weighs as much as it has of them. Transformers itself is not imported.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

from motley._errors import Error

__all__ = ["Loss", "loss"]

KINDS = (None, "shifted", "labels", "samples")
IGNORED = -100
# Classes of transformers by what their loss is the mean over, where labels are tokens.
SHIFTED = re.compile(r"ForCausalLM|(?<!XLNet)(?<!XLMWith)(?<!FlaubertWith)LMHeadModel|ForConditionalGeneration")
IN_PLACE = re.compile(r"ForMaskedLM|ForTokenClassification|EncoderDecoder|XLNetLMHeadModel")
# Decoders of models that are encoder and decoder: they are given what is to follow, and shift nothing.
DECODERS = re.compile(r"^(Bart|BigBirdPegasus|Blenderbot|BlenderbotSmall|MBart|Marian|Mvp|PLBart|Pegasus|ProphetNet|TrOCR)ForCausalLM$")
TOLERANCE = 1e-6
DEPTH_MAX = 8  # of wrappers


class Loss:
    """The loss that a model returns for a batch with labels, and how much it weighs.

    tokens: what the model's loss is a mean over. "labels": those that are not `ignored`; "shifted": likewise without the first of each
        sequence, which a causal model is not asked for; "samples": the batch. None: as is known of the model's class.
    ignored: the label that does not count.

    Errors: a batch or an output of another kind, a class that is not known.
    """

    def __init__(self, tokens: str | None = None, ignored: int = IGNORED):
        if tokens not in KINDS:
            raise Error(f"tokens: expected one of {', '.join(map(str, KINDS))}, found {tokens!r}", 'motley.hf.Loss(tokens="shifted")')
        self._tokens, self._ignored = tokens, ignored

    def __call__(self, model: Any, batch: Any) -> Any:
        if not isinstance(batch, Mapping):
            raise Error(f"motley.hf.loss: expected a batch that is a dictionary of the model's arguments, found {type(batch).__name__}",
                        "a data set whose samples are dictionaries with input_ids and labels, or a collate_fn of transformers")
        labels = batch.get("labels")
        if not isinstance(labels, torch.Tensor) and self._tokens != "samples":
            raise Error(f"motley.hf.loss: the batch has no labels, only {', '.join(map(str, batch)) or 'nothing'}",
                        'give it labels; motley.hf.Loss(tokens="samples") where the loss is a mean over the samples without them')
        output = model(**batch)
        mean = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if not isinstance(mean, torch.Tensor):
            raise Error(f"motley.hf.loss: {type(model).__name__} returned {type(output).__name__} without a loss",
                        "a model that computes its loss from labels, as the classes with a head do (AutoModelFor…)")
        tokens = self._tokens or _known(model, labels)
        if tokens == "samples":
            return mean
        weight = self._counted(labels, tokens)
        if mean.dtype == torch.float64:  # in the trial at the start
            self._check(model, output, labels, mean, tokens)
        return mean, weight

    def _counted(self, labels: torch.Tensor, tokens: str) -> torch.Tensor:
        return ((labels[..., 1:] if tokens == "shifted" else labels) != self._ignored).sum()

    def _check(self, model: Any, output: Any, labels: torch.Tensor, mean: torch.Tensor, tokens: str) -> None:
        """Errors: the model's loss is the mean over other tokens."""
        logits = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
        if not isinstance(logits, torch.Tensor) or labels.dim() != 2 or logits.dim() != 3 or logits.shape[:2] != labels.shape:
            return
        with torch.no_grad():
            found = {"labels": self._mean(logits, labels), "shifted": self._mean(logits[:, :-1], labels[:, 1:])}
        close = [kind for kind, value in found.items() if abs(value - mean.item()) <= TOLERANCE * abs(value)]
        if close and tokens not in close:
            raise Error(f"motley.hf.loss: the loss of {type(model).__name__} is the mean over other tokens than tokens=\"{tokens}\" says",
                        f'motley.hf.Loss(tokens="{close[0]}")')

    def _mean(self, logits: torch.Tensor, labels: torch.Tensor) -> float:
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=self._ignored).item()


def _known(model: Any, labels: torch.Tensor) -> str:
    """What a model's loss is a mean over. Errors: nothing is known of its class."""
    if labels.is_floating_point():
        return "samples"
    if labels.dim() < 2:
        return "labels"
    for each in reversed(_inner(model)):
        for name in (kind.__name__ for kind in type(each).__mro__):
            if IN_PLACE.search(name) or DECODERS.match(name):
                return "labels"
            if SHIFTED.search(name):
                encoded = "ForConditionalGeneration" in name and getattr(getattr(each, "config", None), "is_encoder_decoder", False)
                return "labels" if encoded else "shifted"
    raise Error(f"motley.hf.loss: labels of {list(labels.shape)}, and it is not known over what {type(model).__name__} takes the mean",
                'motley.hf.Loss(tokens="shifted") for a causal model, "labels" where each label stands at the place of its output')


def _inner(model: Any) -> list[Any]:
    """The model, and what wrappers such as peft's and torch.compile's have inside, the outermost first."""
    found = [model]
    while len(found) < DEPTH_MAX:
        inside = getattr(found[-1], "_modules", {})
        named = [inside[name] for name in ("_orig_mod", "base_model", "model") if isinstance(inside.get(name), torch.nn.Module)]
        if not named:
            break
        found.append(named[0])
    return found


loss = Loss()
