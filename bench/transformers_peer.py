"""Any causal language model of transformers, by its config.json, with random weights or ours. See pytorch_peer.py.

Attention is what transformers chooses: PyTorch's own (`sdpa`). Recurrent layers are its implementations in PyTorch: the
kernels that it prefers need CUDA.
"""

import inspect

import torch
from pytorch_peer import main
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache


class Transformers(torch.nn.Module):
    def __init__(self, settings):
        super().__init__()
        config = AutoConfig.for_model(**settings)
        self.model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        self.embed_tokens = self.model.get_input_embeddings()
        names = inspect.signature(self.model.forward).parameters
        self.cache = "past_key_values" if "past_key_values" in names else "cache_params"

    def past(self, tokens):
        return DynamicCache(config=self.model.config)

    def forward(self, ids, past=None):
        """[B, T] → [B, T, V]. What `past` holds is continued."""
        return self.model(ids, use_cache=past is not None, **({} if past is None else {self.cache: past})).logits


if __name__ == "__main__":
    main(Transformers, lambda name: f"model.{name}")
