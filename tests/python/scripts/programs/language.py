"""Programs about text."""

import math

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, TensorDataset

from programs.plain import Program, plainly_in_groups

TEXT = "the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. how vexingly quick daft zebras jump! " * 2
LETTERS = sorted(set(TEXT))
BLOCK, WIDTH = 12, 16


class Characters(Dataset):
    """Every window of the text, and the same one place further."""

    def __init__(self):
        self.text = torch.tensor([LETTERS.index(letter) for letter in TEXT])

    def __len__(self):
        return 180

    def __getitem__(self, index):
        window = self.text[index : index + BLOCK + 1]
        return window[:-1], window[1:]


class CausalAttention(nn.Module):
    """keeps: its attention, for whoever draws pictures."""

    def __init__(self, heads=2, keeps=False):
        super().__init__()
        self.heads, self.keeps = heads, keeps
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("bias", torch.tril(torch.ones(BLOCK, BLOCK)).view(1, 1, BLOCK, BLOCK))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, dim=2))
        attention = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        attention = attention.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf")).softmax(-1)
        if self.keeps:
            self.attention = attention
        return self.c_proj((attention @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, dropout=0.0, keeps=False):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(WIDTH), CausalAttention(keeps=keeps), nn.LayerNorm(WIDTH)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(WIDTH, 4 * WIDTH), "act": nn.GELU(), "c_proj": nn.Linear(4 * WIDTH, WIDTH),
                                  "dropout": nn.Dropout(dropout)})
        m = self.mlp
        self.mlpf = lambda x: m.dropout(m.c_proj(m.act(m.c_fc(x))))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlpf(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, block=Block, letters=len(LETTERS), checkpoints=False):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(letters, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.h = nn.ModuleList([block() for _ in range(2)])
        self.ln_f, self.lm_head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters, bias=False)
        self.checkpoints = checkpoints

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.h:
            x = checkpoint(block, x, use_reentrant=True) if self.checkpoints else block(x)
        return self.lm_head(self.ln_f(x))

    def decay_groups(self):
        parameters = list(self.parameters())
        return [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
                {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]


def next_letter(model, batch):
    tokens, targets = batch
    logits = model(tokens)
    return functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


# --- a learning rate set by hand -----------------------------------------------------------------------------------------------

MOST, LEAST, WARM_UP, DECAYED = 3e-3, 3e-4, 4, 11


def get_lr(it):
    if it < WARM_UP:
        return MOST * (it + 1) / (WARM_UP + 1)
    if it > DECAYED:
        return LEAST
    return LEAST + 0.5 * (1.0 + math.cos(math.pi * (it - WARM_UP) / (DECAYED - WARM_UP))) * (MOST - LEAST)


def char_gpt():
    model = Gpt()
    optimizer = torch.optim.AdamW(model.decay_groups(), lr=MOST, betas=(0.9, 0.95))
    return Program(model, next_letter, Characters(), optimizer, char_gpt_plainly,
                   options={"schedule": get_lr, "schedule_every": "step", "clip_norm": 1.0})


def char_gpt_plainly(program):
    for step, numbers in program.batches():
        for group in program.optimizer.param_groups:
            group["lr"] = get_lr(step)
        loss = next_letter(program.model, program.collated(numbers))
        program.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(program.model.parameters(), 1.0)
        program.optimizer.step()
        yield loss.item()


# --- random masking in collate_fn ----------------------------------------------------------------------------------------------

NOTHING, MASKED = -100, len(LETTERS)


def mask(samples):
    """15 % of the letters are to be found: 80 % of these masked, 10 % another letter, 10 % as they are."""
    tokens = torch.stack([tokens for tokens, _ in samples])
    labels = tokens.clone()
    wanted = torch.bernoulli(torch.full(labels.shape, 0.15)).bool()
    labels[~wanted] = NOTHING
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & wanted
    tokens[replaced] = MASKED
    another = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & wanted & ~replaced
    tokens[another] = torch.randint(len(LETTERS), labels.shape)[another]
    return {"input_ids": tokens, "labels": labels}


def masked_letters(model, batch):
    logits = model(batch["input_ids"])
    found = functional.cross_entropy(logits.view(-1, logits.size(-1)), batch["labels"].view(-1), ignore_index=NOTHING, reduction="sum")
    count = (batch["labels"] != NOTHING).sum()
    return found / count.clamp(min=1), count


def masked_lm():
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(MASKED + 1, WIDTH), encoder, nn.Linear(WIDTH, MASKED))
    return Program(model, masked_letters, Characters(), torch.optim.AdamW(model.parameters(), lr=2e-3), plainly_in_groups, batch=160,
                   collate=mask)


# --- layers with habits --------------------------------------------------------------------------------------------------------


def checkpointed():
    """Reentrant checkpoints, with dropout inside."""
    model = Gpt(lambda: Block(dropout=0.1), checkpoints=True)
    return Program(model, next_letter, Characters(), torch.optim.AdamW(model.parameters(), lr=2e-3), plainly_in_groups, batch=160)


def looked_at():
    """A layer that keeps its attention, with its graph; no clipping, said so."""
    model = Gpt(lambda: Block(keeps=True))
    return Program(model, next_letter, Characters(), torch.optim.Adam(model.parameters(), lr=2e-3), options={"clip_norm": None})


class Lora(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base, self.scale = base, 2.0
        self.a, self.b = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.base(x) + self.scale * self.b(self.a(x))


def lora():
    """A frozen model with adapters, of which one half begins at zero."""
    model = Gpt()
    model.requires_grad_(False)
    for block in model.h:
        block.attn.c_attn = Lora(block.attn.c_attn)
        block.mlp["c_fc"] = Lora(block.mlp["c_fc"])
    adapters = [p for p in model.parameters() if p.requires_grad]
    return Program(model, next_letter, Characters(), torch.optim.AdamW(adapters, lr=5e-3))


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.EmbeddingBag(50, 8, mode="mean", sparse=True), nn.Linear(8, 3)
        self.offset = nn.Embedding(50, 3, sparse=True)

    def forward(self, words):
        return self.head(self.embed(words)) + self.offset(words[:, 0])


def bag_loss(model, batch):
    words, kind = batch
    return functional.cross_entropy(model(words), kind)


def sparse():
    """Sparse embeddings; half of the words never come."""
    model = Bag()
    words = torch.randint(25, (180, 6), generator=torch.Generator().manual_seed(1))
    return Program(model, bag_loss, TensorDataset(words, words.sum(1) % 3), torch.optim.SGD(model.parameters(), lr=0.5))
