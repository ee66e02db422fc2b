"""MiniMind 2, which is Llama with other sizes, in transformers. See pytorch_peer.py."""

import torch
from pytorch_peer import main
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM


class Transformers(LlamaForCausalLM):
    def __init__(self, model):
        model = {"rms_norm_eps": 1e-5, "tie_word_embeddings": True, **{k: v for k, v in model.items() if v is not None}}
        names = LlamaConfig().to_dict()
        super().__init__(LlamaConfig(**{k: v for k, v in model.items() if k in names}, attn_implementation="sdpa"))
        self.embed_tokens = self.model.embed_tokens

    def past(self, tokens):
        return DynamicCache()

    def forward(self, ids, past=None):
        """[B, T] → [B, T, V]. What `past` holds is continued."""
        return super().forward(ids, past_key_values=past, use_cache=past is not None).logits


if __name__ == "__main__":
    main(Transformers)
