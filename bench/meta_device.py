"""Counts the original hybrid model as PyTorch users do: build its modules on the meta device, add up."""

import math
import sys

import torch
from torch import nn

HIDDEN, LAYERS, VOCAB, POSITIONS = 4096, 32, 50432, 65536
STATE, KERNEL, GATE = 64, 4, 256
INNER, STEP = 2 * HIDDEN, math.ceil(HIDDEN / 16)
ON = {"device": "meta"}


def parameter(*shape):
    return nn.Parameter(torch.empty(*shape, **ON))


def linear(inputs, outputs, bias=True):
    return nn.Linear(inputs, outputs, bias=bias, **ON)


class Mamba(nn.Module):
    def __init__(self):
        super().__init__()
        self.A_log = parameter(INNER, STATE)
        self.D = parameter(INNER)
        self.in_proj = linear(HIDDEN, 2 * INNER)
        self.conv1d = nn.Conv1d(INNER, INNER, KERNEL, groups=INNER, padding=KERNEL - 1, **ON)
        self.x_proj = linear(INNER, STEP + 2 * STATE, bias=False)
        self.dt_proj = linear(STEP, INNER)
        self.out_proj = linear(INNER, HIDDEN)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = linear(HIDDEN, HIDDEN, bias=False)
        self.k_proj = linear(HIDDEN, HIDDEN, bias=False)
        self.v_proj = linear(HIDDEN, HIDDEN, bias=False)
        self.out_proj = linear(HIDDEN, HIDDEN)


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.freqs = parameter(1, POSITIONS, HIDDEN)


class Alignment(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(linear(2 * HIDDEN, HIDDEN), nn.GELU(), linear(HIDDEN, HIDDEN))
        self.residual_proj = linear(2 * HIDDEN, HIDDEN)


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.u = linear(HIDDEN, GATE, bias=False)
        self.d = linear(GATE, HIDDEN, bias=False)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_input = nn.LayerNorm(HIDDEN, **ON)
        self.mamba = Mamba()
        self.attention = Attention()
        self.srte = Table()
        self.alignment = Alignment()
        self.gate = Gate()
        self.fusion_proj = linear(HIDDEN, HIDDEN)
        self.small_mlp = nn.Sequential(
            linear(HIDDEN, 4 * HIDDEN), nn.GELU(), linear(4 * HIDDEN, HIDDEN)
        )
        self.ln_output = nn.LayerNorm(HIDDEN, **ON)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCAB, HIDDEN, **ON)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN, **ON)
        self.lm_head = linear(HIDDEN, VOCAB, bias=False)


print(sum(each.numel() for each in Model().parameters()))

if "--memory" in sys.argv:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak // 1024 if sys.platform == "darwin" else peak, file=sys.stderr)
