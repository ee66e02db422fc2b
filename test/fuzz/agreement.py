"""Answers each line of stdin, {"file", "keys"}, with the tensors that PyTorch loads, by name, or the reason for a refusal."""

import hashlib
import json
import sys
import warnings

import torch
from safetensors.torch import load_file

warnings.simplefilter("ignore")


def described(tensor):
    # A file can replace methods of an object by attributes; the detached tensor has none of them.
    tensor = torch.Tensor.detach(tensor)
    if tensor.dtype == torch.bool:
        # Every byte but 0 is True; copies make it 1.
        tensor = tensor.view(torch.uint8) != 0
    flat = tensor.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    storage = flat.untyped_storage()
    data = torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes()
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "sha256": hashlib.sha256(data[: flat.numel() * flat.element_size()]).hexdigest(),
    }


def loaded(file):
    if file.endswith(".safetensors"):
        return load_file(file)
    return torch.load(file, map_location="cpu", weights_only=True)


def answer(request):
    try:
        value = loaded(request["file"])
    except BaseException as error:
        return {"refused": f"{type(error).__name__}: {error}"[:300]}
    try:
        for key in request["keys"]:
            value = dict.__getitem__(value, key)
        return {
            "tensors": {
                # A key that is not a text gets a name that no reader gives.
                name if isinstance(name, str) else f"{type(name).__name__} key": described(tensor)
                for name, tensor in dict.items(value)
                if isinstance(tensor, torch.Tensor)
            }
        }
    except BaseException as error:
        return {"unlike": f"{type(error).__name__}: {error}"[:300]}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
