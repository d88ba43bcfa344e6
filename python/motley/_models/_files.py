"""Weights in files: safetensors with the names of the state_dict, or what torch.load reads."""

import json
import os
import pathlib
import struct
from typing import Any

import torch
from torch import nn

from motley._errors import Error

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64, "I64": torch.int64, "I32": torch.int32,
          "U8": torch.uint8, "BOOL": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
HEADER_BYTES_MAX = 100 << 20


def save(model: nn.Module, path: str) -> None:
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    fresh = f"{path}.new"
    if path.endswith(".safetensors"):
        _write_safetensors(state, fresh)
    elif path.endswith((".pt", ".pth")):
        torch.save(state, fresh)
    else:
        raise Error(f"{path}: expected a name that ends in .safetensors or .pt", 'run.save("model.safetensors")')
    os.replace(fresh, path)


def load(model: nn.Module, path: str) -> None:
    """Puts the weights of a file, or of the newest checkpoint of a run's directory, into the model. Errors: other tensors than the
    model's."""
    file = pathlib.Path(path)
    file = newest_checkpoint(file) or file
    if file.is_dir():
        file = file / "model.safetensors"
    if not file.is_file():
        raise Error(f"init: {path}: expected a file of weights or a run's directory, found neither", 'init="model.safetensors"')
    state = read_safetensors(file) if file.suffix == ".safetensors" else torch.load(file, map_location="cpu", weights_only=True)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise Error(f"init: {path} is of another model: {error}", "take the weights of this model", "mismatch") from None


def newest_checkpoint(run: pathlib.Path) -> pathlib.Path | None:
    """The directory of a run's newest checkpoint; None where there is none."""
    latest = run / "checkpoints" / "latest"
    return run / "checkpoints" / latest.read_text(encoding="utf-8").strip() if latest.is_file() else None


def _write_safetensors(state: dict[str, torch.Tensor], path: str) -> None:
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in state.items():
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [end, end + tensor.nbytes]}
        end += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for tensor in state.values():
            out.write(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()) if tensor.numel() else b"")


def read_safetensors(path: pathlib.Path) -> dict[str, torch.Tensor]:
    """The tensors of a file, by name. Errors: it is damaged."""
    return tensors(path.read_bytes(), str(path))


def tensors(data: bytes, path: str) -> dict[str, torch.Tensor]:
    """Likewise of its bytes; `path`: where they are from."""
    damaged = Error(f"{path} is no whole safetensors file", "take another one")
    if len(data) < 8 or (size := struct.unpack("<Q", data[:8])[0]) > min(HEADER_BYTES_MAX, len(data) - 8):
        raise damaged
    body, state = memoryview(data)[8 + size :], {}
    try:
        for name, about in json.loads(data[8 : 8 + size]).items():
            if name == "__metadata__":
                continue
            first, last = about["data_offsets"]
            dtype, shape = DTYPES[about["dtype"]], about["shape"]
            piece = bytearray(body[first:last])
            state[name] = (torch.frombuffer(piece, dtype=dtype) if piece else torch.empty(0, dtype=dtype)).reshape(shape)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError):
        raise damaged from None
    return state
