"""A forward pass of the hybrid model, written plainly in PyTorch: the scan is a loop over the tokens.

python3 forward_pytorch.py MODEL TOKENS THREADS, where MODEL is the `model` section of a config as JSON with
nothing left out. For every line on standard input it runs once and prints the milliseconds. The speed of its
matrix products, printed first, tells whether PyTorch has a library for them that is worth measuring against.
"""

import json
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

STATE, KERNEL = 64, 4


class Mamba(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        inner = 2 * hidden
        self.inner, self.rank = inner, math.ceil(hidden / 16)
        self.A_log = nn.Parameter(torch.log(torch.arange(1.0, STATE + 1)).repeat(inner, 1))
        self.D = nn.Parameter(torch.ones(inner))
        self.in_proj = nn.Linear(hidden, 2 * inner)
        self.conv1d = nn.Conv1d(inner, inner, KERNEL, groups=inner, padding=KERNEL - 1)
        self.x_proj = nn.Linear(inner, self.rank + 2 * STATE, bias=False)
        self.dt_proj = nn.Linear(self.rank, inner)
        self.out_proj = nn.Linear(inner, hidden)

    def forward(self, u):
        tokens = u.shape[1]
        x, residual = self.in_proj(u).chunk(2, -1)
        x = F.silu(self.conv1d(x.transpose(1, 2))[..., :tokens].transpose(1, 2))
        low, b, c = self.x_proj(x).split([self.rank, STATE, STATE], -1)
        step = F.softplus(self.dt_proj(low) + self.dt_proj.bias)
        a = -torch.exp(self.A_log)
        h = x.new_zeros(u.shape[0], self.inner, STATE)
        ys = []
        for t in range(tokens):
            s = step[:, t, :, None]
            h = h * torch.exp(s * a) + s * b[:, t, None, :] * x[:, t, :, None]
            ys.append((h * c[:, t, None, :]).sum(-1))
        y = torch.stack(ys, 1) + self.D * x
        return self.out_proj(y * F.silu(residual))


class Attention(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden = model["hidden_size"]
        self.heads, self.window = model["num_heads"], model["window_size"]
        self.local = self.heads - min(model["global_heads"], self.heads)
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, hidden, bias=False)
        self.v_proj = nn.Linear(hidden, hidden, bias=False)
        self.out_proj = nn.Linear(hidden, hidden)
        width = hidden // self.heads
        self.frequencies = 10000 ** (-torch.arange(0, width, 2) / width)

    def forward(self, u):
        batch, tokens, hidden = u.shape
        q, k, v = (
            project(u).view(batch, tokens, self.heads, -1).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        angles = torch.arange(tokens)[:, None] * self.frequencies
        cos, sin = (torch.cat([f(angles)] * 2, -1) for f in (torch.cos, torch.sin))
        q, k = (x * cos + turned(x) * sin for x in (q, k))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~self.visible(tokens), float("-inf"))
        seen = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, tokens, hidden)
        return self.out_proj(seen)

    def visible(self, tokens):
        """Which keys each head's queries see, [heads, T, T], for up to 2048 tokens."""
        i, j = torch.arange(tokens)[:, None], torch.arange(tokens)[None]
        everything = j <= i
        near = everything & (j >= i - self.window // 2) if self.window < tokens else everything
        return torch.stack([near if h < self.local else everything for h in range(self.heads)])


def turned(x):
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


class Alignment(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2 * hidden, hidden), nn.GELU(), nn.Linear(hidden, hidden)
        )
        self.residual_proj = nn.Linear(2 * hidden, hidden)

    def forward(self, m, a):
        both = torch.cat([m, a], -1)
        return self.net(both) + self.residual_proj(both)


class Gate(nn.Module):
    def __init__(self, hidden, rank):
        super().__init__()
        self.u = nn.Linear(hidden, rank, bias=False)
        self.d = nn.Linear(rank, hidden, bias=False)

    def forward(self, z):
        return torch.sigmoid(self.d(torch.tanh(self.u(z))))


class Block(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden = model["hidden_size"]
        self.ln_input = nn.LayerNorm(hidden)
        self.mamba = Mamba(hidden)
        self.attention = Attention(model)
        self.alignment = Alignment(hidden)
        self.gate = Gate(hidden, min(model["gate_rank"], hidden // 2))
        self.fusion_proj = nn.Linear(hidden, hidden)
        self.small_mlp = nn.Sequential(
            nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden)
        )
        self.ln_output = nn.LayerNorm(hidden)

    def forward(self, x, encoding):
        n = self.ln_input(x)
        m, a = self.mamba(n + encoding), self.attention(n)
        z = self.alignment(m, a)
        g = self.gate(z)
        fused = self.fusion_proj(g * m + (1 - g) * a)
        return self.ln_output(x + fused + self.small_mlp(z))


class Table(nn.Module):
    def __init__(self, rows, hidden):
        super().__init__()
        self.freqs = nn.Parameter(0.02 * torch.randn(1, rows, hidden))


class Hybrid(nn.Module):
    """With a full table that all layers share, alignment, and a head of its own."""

    def __init__(self, model):
        super().__init__()
        hidden, vocabulary = model["hidden_size"], model["vocab_size"]
        self.embed_tokens = nn.Embedding(vocabulary, hidden)
        self.shared_srte = Table(model["max_position_embeddings"], hidden)
        self.layers = nn.ModuleList(Block(model) for _ in range(model["num_layers"]))
        self.norm = nn.LayerNorm(hidden, eps=model["layer_norm_eps"])
        self.lm_head = nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        encoding = self.shared_srte.freqs[:, : ids.shape[1]]
        for layer in self.layers:
            x = layer(x, encoding)
        return self.lm_head(self.norm(x))


def product_speed(size=512, rounds=20):
    """GFLOP/s of a square product, the best of some."""
    x, seconds = torch.randn(size, size), []
    for _ in range(rounds):
        start = time.perf_counter()
        x @ x
        seconds.append(time.perf_counter() - start)
    return 2e-9 * size**3 / min(seconds)


def main(make):
    """What a benchmark of PyTorch does: `make` gives a model of the settings in the first argument."""
    settings, tokens, threads = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = make(settings).eval()
    ids = torch.randint(settings["vocab_size"], (1, tokens))
    parameters = sum(each.numel() for each in model.parameters())
    facts = {
        "version": torch.__version__,
        "parameters": parameters,
        "productGigaflops": round(product_speed()),
    }
    print(json.dumps(facts), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        with torch.inference_mode():
            model(ids)
        print(1000 * (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main(Hybrid)
