"""MiniMind 2, dense, written plainly in PyTorch. See pytorch_peer.py."""

import torch
from pytorch_peer import KeyValues, Past, angles, main, turned
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden, self.heads = model["hidden_size"], model["num_attention_heads"]
        self.keys, self.width = model["num_key_value_heads"], hidden // self.heads
        self.q_proj = nn.Linear(hidden, hidden, bias=False)
        self.k_proj = nn.Linear(hidden, self.keys * self.width, bias=False)
        self.v_proj = nn.Linear(hidden, self.keys * self.width, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, turns, start, past):
        batch, tokens, hidden = x.shape
        q = self.q_proj(x).view(batch, tokens, self.heads, self.width).transpose(1, 2)
        k = self.k_proj(x).view(batch, tokens, self.keys, self.width).transpose(1, 2)
        v = self.v_proj(x).view(batch, tokens, self.keys, self.width).transpose(1, 2)
        q, k = (turned(each, *turns).to(v.dtype) for each in (q, k))
        if past:
            k, v = past.extended(k, v, start)
        k, v = (each.repeat_interleave(self.heads // self.keys, 1) for each in (k, v))
        # Several tokens are the first, and one sees all.
        y = F.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1)
        return self.o_proj(y.transpose(1, 2).reshape(batch, tokens, hidden))


class Block(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden, inner, eps = (model[key] for key in ("hidden_size", "intermediate_size", "rms_norm_eps"))
        self.self_attn = Attention(model)
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)
        self.input_layernorm = nn.RMSNorm(hidden, eps)
        self.post_attention_layernorm = nn.RMSNorm(hidden, eps)

    def forward(self, x, turns, start, past):
        x = x + self.self_attn(self.input_layernorm(x), turns, start, past)
        n = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(n)) * self.up_proj(n))


class MiniMind(nn.Module):
    def __init__(self, model):
        super().__init__()
        model = {"rms_norm_eps": 1e-5, **{key: each for key, each in model.items() if each is not None}}
        hidden, vocabulary = model["hidden_size"], model["vocab_size"]
        self.embed_tokens = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(Block(model) for _ in range(model["num_hidden_layers"]))
        self.norm = nn.RMSNorm(hidden, model["rms_norm_eps"])
        self.lm_head = nn.Linear(hidden, vocabulary, bias=False)
        self.lm_head.weight = self.embed_tokens.weight
        width = hidden // model["num_attention_heads"]
        frequencies = model["rope_theta"] ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def past(self, tokens):
        return Past([KeyValues(tokens) for _ in self.layers])

    def forward(self, ids, past=None):
        """[B, T] → [B, T, V]. What `past` holds is continued, and becomes what the next call continues."""
        tokens = ids.shape[1]
        start = past.position if past else 0
        turns = tuple(angles(start, tokens, self.frequencies))
        x = self.embed_tokens(ids)
        for index, layer in enumerate(self.layers):
            x = layer(x, turns, start, past.layers[index] if past else None)
        if past:
            past.position += tokens
        return self.lm_head(self.norm(x))


if __name__ == "__main__":
    main(MiniMind, lambda name: name.removeprefix("model.").replace(".mlp.", "."))
