"""`motley sample RUN`: a trained gpt-mini goes on with a text."""

import argparse
import codecs
import json
import math
import pathlib
from collections.abc import Iterator

import torch
from motley._errors import Error
from motley._machines import _fetch
from motley._models import _files
from motley.recipes import _arguments, gpt_mini

TEMPERATURE_MAX = 100.0


def main(words: list[str]) -> int:
    """Writes the text to standard output as it comes. Errors: it is no run of gpt-mini, or has no checkpoint."""
    parser = argparse.ArgumentParser("motley sample", description=__doc__)
    parser.add_argument("run", type=pathlib.Path, help="the directory of a run of gpt-mini, or one of its checkpoints")
    parser.add_argument("--prompt", default="", metavar="TEXT", help="to go on with (default: the start of a line)")
    parser.add_argument("--tokens", type=_arguments.count(1 << 30), default=500, help="bytes to write (default: %(default)s)")
    parser.add_argument("--temperature", type=float, default=0.8,
                        help="0: the likeliest byte; 1: as the model has it (default: %(default)s)")
    parser.add_argument("--top-k", type=_arguments.count(gpt_mini.BYTES, 0), default=0, help="of so many likeliest bytes; 0: of all")
    parser.add_argument("--seed", type=_arguments.SEED, default=1, help="the same one draws the same text")
    parser.add_argument("--json", action="store_true", help="as one event")
    args = parser.parse_args(words)
    if not 0 <= args.temperature <= TEMPERATURE_MAX:
        raise Error(f"--temperature: expected a number from 0 to 100, found {args.temperature}", "--temperature 0.8", "usage")
    model, step = load(args.run)
    torch.manual_seed(args.seed)
    text = codecs.getincrementaldecoder("utf-8")("replace")
    prompt = args.prompt.encode("utf-8", "surrogateescape")
    said = text.decode(prompt)
    if not args.json:
        print(readable(said), end="", flush=True)
    for byte in generate(model, prompt or b"\n", args.tokens, args.temperature, args.top_k):
        said += (piece := text.decode(bytes([byte])))
        if not args.json:
            print(readable(piece), end="", flush=True)
    said += (piece := text.decode(b"", final=True))
    event = {"event": "sample", "step": step, "prompt": args.prompt, "text": said.removeprefix(args.prompt)}
    print(json.dumps(event) if args.json else readable(piece))
    return 0


def load(run: pathlib.Path) -> tuple[gpt_mini.Gpt, int]:
    """The model of a checkpoint, and its step."""
    checkpoint = run if (run / "run.json").is_file() else _files.newest_checkpoint(run)
    run = run.parent.parent if checkpoint == run else run
    if checkpoint is None:
        raise Error(f"{run}: expected a run's directory with a checkpoint", "motley sample runs/gpt-mini-1", "input")
    name, arguments = _fetch.recipe_of(str(run))
    if name != "gpt-mini":
        raise Error(f"{run}: expected a run of gpt-mini, found one of {name}, which writes no text",
                    "motley export RUN model.pt takes any model out of its run")
    told = gpt_mini.arguments().parse_args(arguments)
    model = gpt_mini.Gpt(told.block, told.layers, told.heads, told.width)
    weights = _files.read_safetensors(checkpoint / "model.safetensors")
    weights["lm_head.weight"] = weights["transformer.wte.weight"]  # they are one, and kept once
    model.load_state_dict(weights)
    return model.eval(), int(json.loads((checkpoint / "run.json").read_text(encoding="utf-8"))["step"])


@torch.no_grad()
def generate(model: gpt_mini.Gpt, prompt: bytes, count: int, temperature: float, top_k: int) -> Iterator[int]:
    """The bytes that follow, each seen with the last ones that the model has room for."""
    block = len(model.transformer["wpe"].weight)
    seen = torch.tensor([list(prompt)])
    for _ in range(count):
        seen = seen[:, -block:]
        logits = model(seen)[0, -1]
        if temperature == 0:
            byte = logits.argmax()
        else:
            if top_k:
                logits[logits < logits.topk(top_k).values[-1]] = -math.inf
            byte = torch.multinomial((logits / temperature).softmax(0), 1)[0]
        seen = torch.cat([seen, byte.view(1, 1)], 1)
        yield int(byte)


def readable(text: str) -> str:
    """Without what a terminal takes for an order."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text)
