"""Compares GGUF files that minimind writes with llama.cpp, transformers and Python's gguf package.

pip install torch==2.13.0 transformers==5.18.0 gguf==0.19.0; npm run build; then
python bench/gguf_peers.py FOLDER_OF_NODE_LLAMA_CPP [MODEL...]

For each model: random weights, `convert-checkpoint` into GGUF, the greedy tokens of llama.cpp and of transformers, and
the values of the written file as gguf reads them.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import gguf
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).parent.parent
TOKENS = 24
# 65 rows of the vocabulary, and rows of 64 values: two blocks.
SIZES = dict(vocab_size=320, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0)
SMALL = dict(SIZES, vocab_size=6400, hidden_size=512, intermediate_size=1408, num_hidden_layers=8,
             num_attention_heads=8, max_position_embeddings=2048)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
EXPERTS = dict(moe_intermediate_size=64, num_experts=6, num_experts_per_tok=2, decoder_sparse_step=1)
MODELS = {
    "minimind2-small": (hf.LlamaConfig, dict(SMALL, tie_word_embeddings=True, rope_theta=1e6, rms_norm_eps=1e-5)),
    "llama": (hf.LlamaConfig, SIZES),
    "llama-biases": (hf.LlamaConfig, dict(SIZES, attention_bias=True)),
    "llama-head-dim": (hf.LlamaConfig, dict(SIZES, head_dim=32)),
    "llama-llama3": (hf.LlamaConfig, dict(SIZES, rope_parameters=LLAMA3)),
    "llama-linear": (hf.LlamaConfig, dict(SIZES, rope_parameters=dict(rope_type="linear", factor=4.0, rope_theta=1e4))),
    "llama-yarn": (hf.LlamaConfig, dict(SIZES, rope_parameters=dict(
        rope_type="yarn", factor=4.0, rope_theta=1e4, original_max_position_embeddings=64))),
    "mistral": (hf.MistralConfig, dict(SIZES, sliding_window=None)),
    "mixtral": (hf.MixtralConfig, dict(SIZES, num_local_experts=6)),
    "qwen2": (hf.Qwen2Config, SIZES),
    "qwen2-moe": (hf.Qwen2MoeConfig, dict(SIZES, **EXPERTS, shared_expert_intermediate_size=96, norm_topk_prob=False)),
    "qwen3": (hf.Qwen3Config, dict(SIZES, head_dim=32)),
    "qwen3-moe": (hf.Qwen3MoeConfig, dict(SIZES, **EXPERTS, head_dim=32, norm_topk_prob=True)),
    "gemma": (hf.GemmaConfig, dict(SIZES, head_dim=32)),
    "gemma2": (hf.Gemma2Config, dict(SIZES, head_dim=32, query_pre_attn_scalar=32, sliding_window=16)),
    "gemma3": (hf.Gemma3TextConfig, dict(SIZES, num_hidden_layers=7, head_dim=32, query_pre_attn_scalar=32,
                                         sliding_window=16)),
    "phi3": (hf.Phi3Config, dict(SIZES, sliding_window=None)),
    "olmo2": (hf.Olmo2Config, SIZES),
    "smollm3": (hf.SmolLM3Config, dict(SIZES, num_hidden_layers=5)),
    "gpt2": (hf.GPT2Config, dict(vocab_size=320, n_embd=64, n_layer=3, n_head=4, n_positions=256, bos_token_id=1,
                                 eos_token_id=2)),
    "gpt-neox": (hf.GPTNeoXConfig, dict(vocab_size=320, hidden_size=64, intermediate_size=256, num_hidden_layers=3,
                                        num_attention_heads=4, max_position_embeddings=256, rotary_pct=0.5)),
    "bloom": (hf.BloomConfig, dict(vocab_size=320, hidden_size=64, n_layer=3, n_head=4)),
}
DTYPES = ("keep", "q8_0", "q4_0")


def written(folder, out, dtype):
    command = ["node", ROOT / "bin/run.js", "convert-checkpoint", folder, out, "--dtype", dtype, "--check", "--json",
               "--force"]
    answer = subprocess.run(command, capture_output=True, text=True)
    result = json.loads(answer.stdout)
    if answer.returncode != 0:
        raise SystemExit(f"{folder.name}: {result['message']} {result.get('problems')}")
    return result["gguf"]["relativeError"]


def greedy(node_folder, file, prompt):
    command = ["node", ROOT / "bench/llama-cpp.mjs", node_folder, file, json.dumps(prompt), str(TOKENS)]
    answer = subprocess.run(command, capture_output=True, text=True)
    return json.loads(answer.stdout) if answer.returncode == 0 and answer.stdout else answer.stderr[-600:]


def values_agree(file, exact):
    """Whether gguf reads the file, and dequantizes it to what the blocks of gguf's own quantize hold."""
    other = {each.name: gguf.quants.dequantize(each.data, each.tensor_type) for each in gguf.GGUFReader(exact).tensors}
    wrong = []
    for each in gguf.GGUFReader(file).tensors:
        source = other[each.name]
        kind = each.tensor_type
        if kind not in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16):
            source = gguf.quants.dequantize(gguf.quants.quantize(source, kind), kind)
        if (gguf.quants.dequantize(each.data, kind) != source).any():
            wrong.append(each.name)
    return wrong


def tokenizer():
    """A byte-level BPE of 300 tokens: programs of llama.cpp need a tokenizer, even for token ids."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<pad>", "<s>", "</s>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    found.train_from_iterator([pathlib.Path(__file__).read_text()], trainer)
    return found


def main(node_folder, names):
    for name in names or MODELS:
        kind, settings = MODELS[name]
        torch.manual_seed(sum(map(ord, name)))
        config = kind(**settings)
        model = hf.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                # Random enough that tokens differ, and norms and biases with them.
                scale = 0.5 if "norm" in key or "ln_" in key or key.endswith("bias") else 0.2
                parameter.add_(torch.randn_like(parameter) * (scale if parameter.dim() < 2 else 0.08))
        model.generation_config.eos_token_id = None
        prompt = torch.randint(3, settings["vocab_size"], (1, 40))
        config_tokens = dict(max_new_tokens=TOKENS, do_sample=False, eos_token_id=None, pad_token_id=0)
        wanted = model.generate(prompt, attention_mask=torch.ones_like(prompt), **config_tokens)[0, 40:].tolist()
        with tempfile.TemporaryDirectory() as place:
            # llama.cpp asks for tokens of Phi 3 where general.name has its name.
            folder = pathlib.Path(place) / "model"
            model.save_pretrained(folder)
            tokenizer().save(str(folder / "tokenizer.json"))
            exact = folder.with_suffix(".keep.gguf")
            for dtype in DTYPES:
                file = folder.with_suffix(f".{dtype}.gguf")
                error = written(folder, file, dtype)
                found = greedy(node_folder, file, prompt[0].tolist())
                same = (f"{sum(a == b for a, b in zip(found, wanted))} of {len(wanted)}"
                        if isinstance(found, list) else found)
                wrong = values_agree(file, exact)
                print(f"{name:16} {dtype:5} error {error}  same tokens {same}  wrong values {wrong}",
                      flush=True)


main(sys.argv[1], sys.argv[2:])
