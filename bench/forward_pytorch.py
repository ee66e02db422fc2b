"""The hybrid model in PyTorch: plain, but for the scan, which the key `scan` of MODEL chooses. See pytorch_peer.py.

`plain` is a loop over the tokens as one writes it down; `chunked` computes what does not depend on the state for
many tokens at once, and then takes one operation for each token.
"""

import math

import torch
from pytorch_peer import KeyValues, Past, angles, main, turned
from torch import nn
from torch.nn import functional as F

STATE, KERNEL = 64, 4
# Values that the chunks of a scan have, at most: on a processor they are to stay in its cache.
CHUNK = {"cpu": 2**19, "cuda": 2**26, "mps": 2**26}


def plain_scan(step, x, b, c, a, h):
    """step, x [B, T, D]; b, c [B, T, N]; a [N, D]; h [B, N, D] → y [B, T, D] and the last h."""
    a, h = a.T.contiguous(), h.transpose(1, 2).contiguous()
    ys = []
    for t in range(x.shape[1]):
        s = step[:, t, :, None]
        h = h * torch.exp(s * a) + s * b[:, t, None, :] * x[:, t, :, None]
        ys.append((h * c[:, t, None, :]).sum(-1))
    return torch.stack(ys, 1), h.transpose(1, 2)


def chunked_scan(step, x, b, c, a, h):
    """The same."""
    tokens = max(1, CHUNK[x.device.type] // h.numel())
    ys = []
    # Time comes first, so that what a token needs lies together.
    for each in zip(*(value.transpose(0, 1).split(tokens) for value in (step, step * x, b, c))):
        s, u, b_, c_ = each
        decays = torch.exp(s[:, :, None] * a)  # [T, B, N, D]
        states = b_[..., None] * u[:, :, None]
        for decay, state in zip(decays, states):
            h = state.addcmul_(decay, h)
        ys.append((c_[:, :, None] @ states)[:, :, 0])
    return torch.cat(ys).transpose(0, 1), h.clone()


SCANS = {"plain": plain_scan, "chunked": chunked_scan}


class Mamba(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden = model["hidden_size"]
        inner = 2 * hidden
        self.inner, self.rank = inner, math.ceil(hidden / 16)
        self.scan = SCANS[model.get("scan", "plain")]
        self.A_log = nn.Parameter(torch.log(torch.arange(1.0, STATE + 1)).repeat(inner, 1))
        self.D = nn.Parameter(torch.ones(inner))
        self.in_proj = nn.Linear(hidden, 2 * inner)
        self.conv1d = nn.Conv1d(inner, inner, KERNEL, groups=inner)
        self.x_proj = nn.Linear(inner, self.rank + 2 * STATE, bias=False)
        self.dt_proj = nn.Linear(self.rank, inner)
        self.out_proj = nn.Linear(inner, hidden)

    def forward(self, u, past):
        """`past`, when decoding: `conv`, the convolution's last inputs, and `scan`, the last state."""
        x, residual = self.in_proj(u).chunk(2, -1)
        x = x.transpose(1, 2)
        x = torch.cat([past["conv"], x], -1) if past.get("conv") is not None else F.pad(x, (KERNEL - 1, 0))
        past["conv"] = x[..., 1 - KERNEL :]
        x = F.silu(self.conv1d(x).transpose(1, 2))
        low, b, c = self.x_proj(x).split([self.rank, STATE, STATE], -1)
        step = F.softplus((self.dt_proj(low) + self.dt_proj.bias).float())
        a = -torch.exp(self.A_log).T.contiguous()
        h = past["scan"] if "scan" in past else step.new_zeros(u.shape[0], STATE, self.inner)
        y, past["scan"] = self.scan(step, x, b, c, a, h)
        return self.out_proj((y + self.D * x) * F.silu(residual))


class Attention(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden = model["hidden_size"]
        self.heads = model["num_heads"]
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, hidden, bias=False)
        self.v_proj = nn.Linear(hidden, hidden, bias=False)
        self.out_proj = nn.Linear(hidden, hidden)

    def forward(self, u, turns, visible, start, past):
        batch, tokens, hidden = u.shape
        q, k, v = (
            project(u).view(batch, tokens, self.heads, -1).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = (turned(x, *turns).to(v.dtype) for x in (q, k))
        if past:
            k, v = past.extended(k, v, start)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.out_proj(y.transpose(1, 2).reshape(batch, tokens, hidden))


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
        self.mamba = Mamba(model)
        self.attention = Attention(model)
        self.alignment = Alignment(hidden)
        self.gate = Gate(hidden, min(model["gate_rank"], hidden // 2))
        self.fusion_proj = nn.Linear(hidden, hidden)
        self.small_mlp = nn.Sequential(
            nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden)
        )
        self.ln_output = nn.LayerNorm(hidden)

    def forward(self, x, encoding, turns, visible, start, past):
        n = self.ln_input(x)
        m = self.mamba(n + encoding, past)
        a = self.attention(n, turns, visible, start, past.get("attention"))
        z = self.alignment(m, a)
        g = self.gate(z)
        fused = self.fusion_proj(g * m + (1 - g) * a)
        return self.ln_output(x + fused + self.small_mlp(z))


class Table(nn.Module):
    def __init__(self, rows, hidden):
        super().__init__()
        self.freqs = nn.Parameter(0.02 * torch.randn(1, rows, hidden))


class Hybrid(nn.Module):
    """With a full table that all layers share, alignment, a head of its own, and one window for all layers."""

    def __init__(self, model):
        super().__init__()
        hidden, vocabulary, heads = model["hidden_size"], model["vocab_size"], model["num_heads"]
        self.heads, self.window = heads, model["window_size"]
        self.local = heads - min(model["global_heads"], heads)
        self.embed_tokens = nn.Embedding(vocabulary, hidden)
        self.shared_srte = Table(model["max_position_embeddings"], hidden)
        self.layers = nn.ModuleList(Block(model) for _ in range(model["num_layers"]))
        self.norm = nn.LayerNorm(hidden, eps=model["layer_norm_eps"])
        self.lm_head = nn.Linear(hidden, vocabulary, bias=False)
        width = hidden // heads
        frequencies = 10000 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def past(self, tokens):
        return Past([{"attention": KeyValues(tokens)} for _ in self.layers])

    def forward(self, ids, past=None):
        """[B, T] → [B, T, V]. What `past` holds is continued, and becomes what the next call continues."""
        tokens = ids.shape[1]
        start = past.position if past else 0
        whole = past.layers[0]["attention"].tokens if past else tokens
        turns = tuple(angles(start, tokens, self.frequencies))
        visible = self.visible(start, tokens, whole)
        encoding = self.shared_srte.freqs[:, start : start + tokens]
        x = self.embed_tokens(ids)
        for index, layer in enumerate(self.layers):
            x = layer(x, encoding, turns, visible, start, past.layers[index] if past else {})
        if past:
            past.position += tokens
        return self.lm_head(self.norm(x))

    def visible(self, start, tokens, whole):
        """Which keys each head's queries see, [1, heads, T, S], for up to 2048 tokens in the end, `whole`."""
        device = self.frequencies.device
        i = torch.arange(start, start + tokens, device=device)[:, None]
        j = torch.arange(start + tokens, device=device)[None]
        everything = j <= i
        near = everything & (j >= i - self.window // 2) if self.window < whole else everything
        return torch.stack([near] * self.local + [everything] * (self.heads - self.local))[None]


if __name__ == "__main__":
    main(Hybrid)
