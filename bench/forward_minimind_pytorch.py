"""A forward pass of MiniMind 2, dense, written plainly in PyTorch.

python3 forward_minimind_pytorch.py MODEL TOKENS THREADS: see forward_pytorch.py.
"""

import torch
from forward_pytorch import main
from torch import nn
from torch.nn import functional as F


class RmsNorm(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Attention(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden, self.heads = model["hidden_size"], model["num_attention_heads"]
        self.keys, self.width = model["num_key_value_heads"], hidden // self.heads
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, self.keys * self.width, bias=False)
        self.v_proj = nn.Linear(hidden, self.keys * self.width, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, cos, sin):
        batch, tokens, hidden = x.shape
        q = self.q_proj(x).view(batch, tokens, self.heads, self.width).transpose(1, 2)
        k = self.k_proj(x).view(batch, tokens, self.keys, self.width).transpose(1, 2)
        v = self.v_proj(x).view(batch, tokens, self.keys, self.width).transpose(1, 2)
        k, v = (each.repeat_interleave(self.heads // self.keys, 1) for each in (k, v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(batch, tokens, hidden))


class Block(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden, inner, eps = (model[key] for key in ("hidden_size", "intermediate_size", "rms_norm_eps"))
        self.self_attn = Attention(model)
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)
        self.input_layernorm = RmsNorm(hidden, eps)
        self.post_attention_layernorm = RmsNorm(hidden, eps)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        n = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(n)) * self.up_proj(n))


class MiniMind(nn.Module):
    def __init__(self, model):
        super().__init__()
        model = {"rms_norm_eps": 1e-5, **{key: each for key, each in model.items() if each is not None}}
        hidden, vocabulary = model["hidden_size"], model["vocab_size"]
        self.embed_tokens = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(Block(model) for _ in range(model["num_hidden_layers"]))
        self.norm = RmsNorm(hidden, model["rms_norm_eps"])
        self.lm_head = nn.Linear(hidden, vocabulary, bias=False)
        self.lm_head.weight = self.embed_tokens.weight
        width = hidden // model["num_attention_heads"]
        self.frequencies = model["rope_theta"] ** (-torch.arange(0, width, 2) / width)

    def forward(self, ids):
        angles = torch.outer(torch.arange(ids.shape[1]).float(), self.frequencies)
        cos, sin = (torch.cat((each, each), -1) for each in (angles.cos(), angles.sin()))
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


if __name__ == "__main__":
    main(MiniMind)
