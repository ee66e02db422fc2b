"""What the implementations in PyTorch share: a program that runs its model when it is told to, and keys and values.

python3 forward_pytorch.py MODEL DEVICE THREADS [WEIGHTS], where MODEL is the `model` section of a config as JSON
with nothing left out, DEVICE is `cpu` or `card`, which is a graphics card if PyTorch can use one, and WEIGHTS a
safetensors file of float32; without it weights are random. It prints what it runs on as JSON: with it the speed
of its matrix products, which tells whether PyTorch has a library for them that is worth measuring against.

Every line on standard input then is a request as JSON: `batch` sequences of `tokens` tokens; `steps`, how many of
them are given one by one, with a cache, after the others, and only these are timed, or 0 for one forward pass
without a cache; `compute`, `f32` or `f16`, which is PyTorch's autocast; `logits`, a file to write them to, or null.
It answers with the milliseconds of all steps, or with `{"error": …}`. The clock starts with the ids in the memory
of the process and stops with the logits there.
"""

import json
import sys
import time

import torch


class KeyValues:
    """Keys and values [B, heads, T, width] of a sequence that goes on, for up to so many tokens."""

    def __init__(self, tokens):
        self.tokens, self.k, self.v = tokens, None, None

    def extended(self, k, v, start):
        """All up to these, which begin at position `start`."""
        batch, heads, tokens, width = k.shape
        if self.k is None:
            self.k, self.v = (x.new_zeros(batch, heads, self.tokens, width) for x in (k, v))
        end = start + tokens
        self.k[:, :, start:end], self.v[:, :, start:end] = k, v
        return self.k[:, :, :end], self.v[:, :, :end]


class Past:
    """What a model keeps of the tokens before: how many they are, and a state of each layer."""

    def __init__(self, layers):
        self.position, self.layers = 0, layers


def angles(start, tokens, frequencies):
    """Cosines and sines [T, width] of halves that are turned."""
    positions = torch.arange(start, start + tokens, device=frequencies.device)
    turns = torch.outer(positions.float(), frequencies)
    return (torch.cat((each, each), -1) for each in (turns.cos(), turns.sin()))


def turned(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def product_speed(device, rounds=20):
    """GFLOP/s of a square product, the best of some."""
    size = 512 if device.type == "cpu" else 4096
    x, seconds = torch.randn(size, size, device=device), []
    for _ in range(rounds):
        start = time.perf_counter()
        (x @ x)[0, 0].item()
        seconds.append(time.perf_counter() - start)
    return 2e-9 * size**3 / min(seconds)


def device_of(wish):
    if wish == "card" and torch.cuda.is_available():
        return torch.device("cuda")
    if wish == "card" and torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def facts_of(model, device):
    is_cuda = device.type == "cuda"
    return {
        "version": torch.__version__,
        "device": device.type,
        **({"card": torch.cuda.get_device_name(), "cuda": torch.version.cuda} if is_cuda else {}),
        "threads": torch.get_num_threads(),
        "parameters": sum(each.numel() for each in model.parameters()),
        "productGigaflops": round(product_speed(device)),
    }


def weights_of(path):
    """Of a safetensors file, by their names."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)

    def tensor(shape, offsets):
        first, last = offsets
        count = (last - first) // 4
        return torch.frombuffer(data, dtype=torch.float32, count=count, offset=begin + first).view(shape)

    return {name: tensor(each["shape"], each["data_offsets"]) for name, each in header.items()}


def load(model, path, rename):
    """Every weight of the file, and every one of the model: a tied one stands in the file once."""
    weights = {rename(name): value for name, value in weights_of(path).items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    aliases = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    aliases -= {name for name, _ in model.named_parameters()}
    if unexpected or set(missing) - aliases:
        raise KeyError(f"the weights lack {missing} and have {unexpected} besides")


def answer(model, device, batch, tokens, steps, compute, logits):
    ids = (torch.arange(batch * tokens) * 7919 % model.embed_tokens.num_embeddings).view(batch, tokens)
    half = torch.autocast(device.type, torch.float16, enabled=compute == "f16")
    with torch.inference_mode(), half:
        past = model.past(tokens) if steps else None
        if steps:
            model(ids[:, : tokens - steps].to(device), past).cpu()
        rest = ids[:, tokens - steps :].split(1, 1) if steps else [ids]
        start = time.perf_counter()
        found = [model(each.to(device), past).cpu() for each in rest]
        milliseconds = 1000 * (time.perf_counter() - start)
    if logits:
        whole = torch.cat(found, 1).float().flatten()
        torch.from_file(logits, shared=True, size=whole.numel()).copy_(whole)
    return milliseconds


def main(make, rename=lambda name: name):
    """`make` gives a model of the settings, `rename` its name for a weight of the file."""
    settings, wish, threads, *weights = sys.argv[1:]
    torch.set_num_threads(int(threads))
    # float32 is float32: by itself PyTorch rounds the operands of convolutions to TF32.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    device = device_of(wish)
    model = make(json.loads(settings)).eval()
    for path in weights:
        load(model, path, rename)
    model.to(device)
    print(json.dumps(facts_of(model, device)), flush=True)
    for line in sys.stdin:
        try:
            told = answer(model, device, **json.loads(line))
        except RuntimeError as error:  # out of memory, or an operation that a device lacks
            told = {"error": str(error).splitlines()[0]}
        print(json.dumps(told), flush=True)
