"""Trains three small models on a text, for the table of losses of quantized weights in docs/quantization.md.

pip install torch==2.13.0 transformers==5.18.0; then
python bench/train_text_models.py TEXT OUT SECONDS [NAME...]

The first nine tenths of the text are for training, the last tenth is written to OUT/held-out.txt. Each model is a Llama
of the size in MODELS, in a folder OUT/NAME with its tokenizer (byte-level BPE, 2,048 tokens). The smallest is trained for
SECONDS, the others two and four times as long, or until the loss on held-out text rises.
"""

import math
import pathlib
import sys
import time

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 2048
CONTEXT = 256
BATCH = 8
# Width, layers, heads, width of the feed-forward layer, learning rate.
MODELS = {
    "1m": (128, 4, 4, 384, 3e-3),
    "6m": (256, 6, 8, 768, 2e-3),
    "26m": (512, 8, 8, 1408, 1e-3),
}


def trained_tokenizer(text):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet,
                                  show_progress=False)
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def loss_of(model, ids):
    model.eval()
    with torch.inference_mode():
        windows = ids[: len(ids) // CONTEXT * CONTEXT].view(-1, CONTEXT).split(32)
        losses = [model(each, labels=each).loss.item() * len(each) for each in windows]
    return sum(losses) / sum(len(each) for each in windows)


def train(name, ids, held_out, out, seconds):
    width, layers, heads, inner, rate = MODELS[name]
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                         num_key_value_heads=max(2, heads // 4), intermediate_size=inner, tie_word_embeddings=True,
                         max_position_embeddings=CONTEXT, bos_token_id=0, eos_token_id=1, attention_dropout=0.1)
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.1)
    start, step, best = time.monotonic(), 0, math.inf
    while time.monotonic() - start < seconds:
        spent = (time.monotonic() - start) / seconds
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 20) * (0.05 + 0.95 * (1 + math.cos(math.pi * spent)) / 2)
        model.train()
        first = torch.randint(len(ids) - CONTEXT, (BATCH,))
        batch = torch.stack([ids[at : at + CONTEXT] for at in first])
        loss = model(batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 50 == 0:
            found = loss_of(model, held_out)
            print(f"{name} step {step}: {loss.item():.3f}, held out {found:.3f}", flush=True)
            if found > best + 0.02:
                break
            if found < best:
                best = found
                model.save_pretrained(out / name)
    if loss_of(model, held_out) < best:
        model.save_pretrained(out / name)


def main(text, out, seconds, *names):
    text, out = pathlib.Path(text).read_text(), pathlib.Path(out)
    cut = len(text) * 9 // 10
    tokenizer = trained_tokenizer(text[:cut])
    ids, held_out = (torch.tensor(tokenizer.encode(part).ids) for part in (text[:cut], text[cut:]))
    out.mkdir(parents=True, exist_ok=True)
    (out / "held-out.txt").write_text(text[cut:])
    for index, name in enumerate(MODELS):
        if names and name not in names:
            continue
        train(name, ids, held_out, out, float(seconds) * 2**index)
        tokenizer.save(str(out / name / "tokenizer.json"))


main(*sys.argv[1:])
