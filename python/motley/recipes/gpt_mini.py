"""A small GPT, as in nanoGPT and with its names, that learns a text byte by byte: `motley sample` lets it go on with one."""

import math
import pathlib

import motley
import torch
from motley.recipes import _arguments
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

BYTES, DEVIATION, TEXT_BYTES_MAX = 256, 0.02, 1 << 32
WARMUP, LEAST = 100, 0.1  # steps; the last rate as a part of the highest
BATCH, STEPS, BLOCK, LAYERS, HEADS, WIDTH, LR, SEED = 32, 2000, 256, 6, 6, 384, 1e-3, 1


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=2))
        return self.c_proj(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](functional.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, block: int, layers: int, heads: int, width: int, seed: int = SEED):
        super().__init__()
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(BYTES, width), "wpe": nn.Embedding(block, width),
                                          "h": nn.ModuleList(Block(width, heads) for _ in range(layers)), "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, BYTES, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight
        torch.manual_seed(seed)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:  # each block adds to the stream twice, and the sum is not to grow with their number
                nn.init.normal_(parameter, 0, DEVIATION / (math.sqrt(2 * layers) if name.endswith("c_proj.weight") else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Bytes [n, length] to logits [n, length, 256]."""
        x = self.transformer["wte"](x.long()) + self.transformer["wpe"].weight[: x.shape[1]]
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


def loss(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
    x, y = batch
    return functional.cross_entropy(model(x).flatten(0, 1), y.flatten().long())


def score(model: nn.Module, batch: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    x, y = batch
    return {"accuracy": (model(x).argmax(2) == y).float().mean(1).sum()}


def windows(content: bytes, block: int) -> tuple[TensorDataset, TensorDataset]:
    """Pieces of the text, each with the same piece one byte on: the first nine tenths to train on, the others to test."""
    count = (len(content) - 1) // block
    if count < 2:
        raise motley.Error(f"the text has {len(content)} bytes, expected at least {2 * block + 1}: a window of {block} to train on, one to "
                           "test with, and the byte after it", "a longer text, or a smaller --block")
    text = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    x, y = text[: count * block].view(count, block), text[1 : count * block + 1].view(count, block)
    first = count * 9 // 10
    return TensorDataset(x[:first], y[:first]), TensorDataset(x[first:], y[first:])


def arguments() -> _arguments.Parser:
    parser = _arguments.Parser(description=__doc__)
    parser.add_argument("--text", required=True, metavar="FILE", help="what to learn: a path or an address; any bytes, 4 GiB of them")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=_arguments.STEPS, default=STEPS)
    length.add_argument("--epochs", type=_arguments.EPOCHS)
    parser.add_argument("--block", type=_arguments.count(4096), default=BLOCK, help="bytes that it sees")
    parser.add_argument("--layers", type=_arguments.count(48), default=LAYERS)
    parser.add_argument("--heads", type=_arguments.count(64), default=HEADS)
    parser.add_argument("--width", type=_arguments.count(2048), default=WIDTH)
    parser.add_argument("--batch-size", type=_arguments.BATCH, default=BATCH)
    parser.add_argument("--samples", type=_arguments.SAMPLES, help="the first so many windows alone (default: all)")
    parser.add_argument("--lr", type=_arguments.rate, default=LR)
    parser.add_argument("--seed", type=_arguments.SEED, default=SEED)
    return parser


def main() -> None:
    parser = arguments()
    args = parser.parse_args()
    if args.width % args.heads != 0:
        parser.error(f"--width {args.width} is no multiple of --heads {args.heads}")
    most = TEXT_BYTES_MAX if args.samples is None else min(TEXT_BYTES_MAX, args.samples * args.block + 1)
    with pathlib.Path(motley.files(args.text)).open("rb") as file:
        train, test = windows(file.read(most), args.block)
    model = Gpt(args.block, args.layers, args.heads, args.width, args.seed)
    loader = DataLoader(train, batch_size=args.batch_size, shuffle=True)
    steps = args.steps if args.epochs is None else args.epochs * len(loader)
    matrices = [each for each in model.parameters() if each.dim() >= 2]
    others = [each for each in model.parameters() if each.dim() < 2]  # shifts and scales have nothing to gain from decay
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=args.lr, betas=(0.9, 0.99))

    def rate(step: int) -> float:
        if step < WARMUP:
            return args.lr * (step + 1) / WARMUP
        turn = math.pi * min(1.0, (step - WARMUP) / max(1, steps - WARMUP))
        return args.lr * (LEAST + (1 - LEAST) * (1 + math.cos(turn)) / 2)

    run = motley.Run(model, loss, loader, optimizer, schedule=rate, clip_norm=1, seed=args.seed,
                     test=DataLoader(test, batch_size=args.batch_size), score=score)
    for _ in run.steps(steps):
        pass


if __name__ == "__main__":
    main()
