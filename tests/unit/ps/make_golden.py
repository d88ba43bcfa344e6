"""Writes tests/unit/ps/data/*.txt: twenty steps of torch's optimizers, schedules and clipping on three small tensors.

Run from the root of the project with a Python that has the pinned torch:

    build/venv/bin/python tests/unit/ps/make_golden.py

Format, one item a line: "spec KEY VALUE", "group KEY=VALUE …" in order of groups, "tensor NAME GROUP SIZE…", then per
step "step T", "lr LR…" by group, "norm X" where gradients are clipped, and per tensor "gradient" and "weights" (after
the step) with fp32 values as 8 hex digits. "start" lines hold the weights before the first step. Numbers of the
specification are C99 hex floats.
"""

import math
import pathlib
import struct

import torch

STEPS = 20
TENSORS = [("first.weight", 0, (7, 9)), ("first.bias", 1, (19,)), ("second.weight", 0, (5, 7))]


def hex32(values: torch.Tensor) -> str:
    return "".join(struct.pack(">f", v).hex() for v in values.detach().flatten().tolist())


def schedule_of(optimizer, spec):
    """torch's own schedulers for the closed forms in ps/spec.h."""
    lr_scheduler = torch.optim.lr_scheduler
    warmup = spec.get("warmup_steps", 0)
    kind = spec.get("schedule", "constant")
    if kind == "cosine":
        # eta_min is absolute in torch; min_factor is a share of each group's own rate, so it needs equal base rates.
        rates = {group["lr"] for group in optimizer.param_groups}
        if spec["min_factor"] > 0 and len(rates) > 1:
            raise ValueError("CosineAnnealingLR has one eta_min for all groups")
        main = lr_scheduler.CosineAnnealingLR(
            optimizer, T_max=spec["total_steps"], eta_min=spec["min_factor"] * max(rates)
        )
    elif kind == "step":
        main = lr_scheduler.StepLR(optimizer, step_size=spec["step_size"], gamma=spec["gamma"])
    else:
        main = lr_scheduler.ConstantLR(optimizer, factor=1.0, total_iters=1)
    if warmup == 0:
        return main
    for group in optimizer.param_groups:  # the constructors above have changed it already
        group["lr"] = group["initial_lr"]
    first = lr_scheduler.LinearLR(optimizer, start_factor=1 / warmup, end_factor=1.0, total_iters=warmup - 1)
    return lr_scheduler.SequentialLR(optimizer, [first, main], milestones=[warmup])


def write(path: pathlib.Path, spec: dict, groups: list[dict]) -> None:
    generator = torch.Generator().manual_seed(20)
    parameters = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for _, _, shape in TENSORS]
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    param_groups = []
    for number, group in enumerate(groups):
        options = {key: value for key, value in group.items() if key not in ("beta1", "beta2")}
        if "beta1" in group:
            options["betas"] = (group["beta1"], group["beta2"])
        members = [p for p, (_, g, _) in zip(parameters, TENSORS) if g == number]
        param_groups.append({"params": members, **options})
    optimizer = kinds[spec["kind"]](param_groups, lr=groups[0]["lr"], foreach=False)
    scheduler = schedule_of(optimizer, spec)

    lines = [f"spec {key} {value.hex() if isinstance(value, float) else value}" for key, value in spec.items()]
    for group in groups:
        items = (f"{k}={int(v) if isinstance(v, bool) else float(v).hex()}" for k, v in group.items())
        lines.append("group " + " ".join(items))
    lines += [f"tensor {name} {group} {' '.join(map(str, shape))}" for name, group, shape in TENSORS]
    lines += ["start " + hex32(p) for p in parameters]
    for step in range(STEPS):
        lines.append(f"step {step}")
        lines.append("lr " + " ".join(float(g["lr"]).hex() for g in optimizer.param_groups))
        # A slope towards zero plus noise; now and then a spike for the clipping.
        height = 4.0 if step % 5 == 4 else 0.5
        for p in parameters:
            noise = torch.randn(p.shape, generator=generator)
            p.grad = 0.1 * p.detach() + height * noise
        lines += ["gradient " + hex32(p.grad) for p in parameters]
        if "clip_norm" in spec:
            norm = torch.nn.utils.clip_grad_norm_(parameters, spec["clip_norm"])
            if not math.isfinite(norm):
                raise ValueError("the golden run diverged")
            lines.append(f"norm {float(norm).hex()}")
        optimizer.step()
        scheduler.step()
        lines += ["weights " + hex32(p) for p in parameters]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    folder = pathlib.Path(__file__).resolve().parent / "data"
    folder.mkdir(parents=True, exist_ok=True)
    decayed = {"weight_decay": 0.01}
    write(folder / "sgd.txt", {"kind": "sgd"}, [{"lr": 0.1}, {"lr": 0.05, **decayed}])
    nesterov = {"lr": 0.1, "momentum": 0.9, "nesterov": True, **decayed}
    write(folder / "sgd_nesterov.txt", {"kind": "sgd"}, [nesterov, {"lr": 0.05, "momentum": 0.0}])
    dampened = {"lr": 0.1, "momentum": 0.8, "dampening": 0.3}
    step = {"schedule": "step", "step_size": 6, "gamma": 0.5}
    write(folder / "sgd_dampening_step.txt", {"kind": "sgd", **step}, [dampened, {**dampened, **decayed}])
    adam = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
    write(folder / "adam.txt", {"kind": "adam"}, [{**adam, **decayed}, {**adam, "beta1": 0.4, "beta2": 0.95}])
    write(folder / "adamw.txt", {"kind": "adamw"}, [{**adam, "weight_decay": 0.1}, {**adam, "weight_decay": 0.0}])
    momentum = {"lr": 0.01, "momentum": 0.9}
    write(folder / "clip.txt", {"kind": "sgd", "clip_norm": 8.0}, [momentum, {**momentum, "lr": 0.02}])
    cosine = {"schedule": "cosine", "warmup_steps": 5, "total_steps": 15, "min_factor": 0.1}
    write(folder / "adamw_clip_cosine_warmup.txt", {"kind": "adamw", "clip_norm": 6.0, **cosine}, [{**adam, **decayed}] * 2)


if __name__ == "__main__":
    main()
