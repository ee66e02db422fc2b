"""Measures decoding, prefill, training, LoRA and attention on one GPU; a JSON line per measurement."""
import gc, json, os, sys, time, contextlib
import torch, transformers
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, GPT2Config, Qwen3Config
OUT = open(os.path.join(os.environ.get('OUT', '/tmp'), 'rows.jsonl'), 'a')
START = time.time(); LIMIT = float(os.environ.get('LIMIT', '400'))
TINY = os.environ.get('TINY') == '1'
dev = 'cuda' if torch.cuda.is_available() else 'cpu'
cuda = dev == 'cuda'
torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = True

def emit(**row):
    row['t'] = round(time.time() - START, 1)
    OUT.write(json.dumps(row) + '\n'); OUT.flush(); print(json.dumps(row), flush=True)

def sync():
    if cuda: torch.cuda.synchronize()

def free():
    gc.collect()
    if cuda: torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()

def peak(): return torch.cuda.max_memory_allocated() if cuda else 0
def reserved(): return torch.cuda.max_memory_reserved() if cuda else 0

def timed(fn, n=3, warm=1):
    for _ in range(warm): fn()
    sync(); times = []
    for _ in range(n):
        s = time.perf_counter(); fn(); sync(); times.append(time.perf_counter() - s)
    return sorted(times)[len(times) // 2]

def qwen3(h, l, q, kv, ff, tie, v=151936):
    return Qwen3Config(hidden_size=h, num_hidden_layers=l, num_attention_heads=q, num_key_value_heads=kv, intermediate_size=ff,
                       head_dim=128, vocab_size=v, tie_word_embeddings=tie, max_position_embeddings=40960)
def llama(h, l, q, kv, ff, v, tie=False):
    return LlamaConfig(hidden_size=h, num_hidden_layers=l, num_attention_heads=q, num_key_value_heads=kv, intermediate_size=ff,
                       vocab_size=v, tie_word_embeddings=tie, max_position_embeddings=32768)
def moe(layers):
    from transformers import Qwen3MoeConfig
    return Qwen3MoeConfig(hidden_size=2048, num_hidden_layers=layers, num_attention_heads=32, num_key_value_heads=4, head_dim=128,
      intermediate_size=6144, moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True, decoder_sparse_step=1,
      vocab_size=151936, max_position_embeddings=40960)
CONFIGS = {
  'minimind2-small-26m': lambda: llama(512, 8, 8, 2, 1408, 6400, True),
  'gpt2-124m': lambda: GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0),
  'qwen3-0.6b': lambda: qwen3(1024, 28, 16, 8, 3072, True),
  'qwen3-1.7b': lambda: qwen3(2048, 28, 16, 8, 6144, True),
  'qwen3-4b': lambda: qwen3(2560, 36, 32, 8, 9728, True),
  'qwen3-8b': lambda: qwen3(4096, 36, 32, 8, 12288, False),
  'llama-3.1-8b': lambda: llama(4096, 32, 32, 8, 14336, 128256),
  'qwen3-30b-a3b-12-layers': lambda: moe(12),
}
if TINY:
    CONFIGS = {k: (lambda: llama(64, 2, 4, 2, 128, 512, True)) for k in list(CONFIGS)[:3]}

def make(name, dtype, attn='sdpa'):
    cfg = CONFIGS[name](); cfg.use_cache = True
    prev = torch.get_default_dtype(); torch.set_default_dtype(dtype)
    try:
        with torch.device(dev):
            m = AutoModelForCausalLM.from_config(cfg, attn_implementation=attn, dtype=dtype)
    finally: torch.set_default_dtype(prev)
    return m

def params(m): return sum(p.numel() for p in m.parameters())

@contextlib.contextmanager
def guard(kind, **what):
    if time.time() - START > LIMIT:
        print('skip', kind, what, flush=True); yield False; return
    try: yield True
    except Exception as e:
        emit(kind=kind, error=repr(e)[:200], **what)
    finally: free()

def hardware():
    with guard('hardware') as ok:
        if not ok or not cuda: return
        emit(kind='hardware', card=torch.cuda.get_device_name(), memory=torch.cuda.get_device_properties(0).total_memory, free=torch.cuda.mem_get_info()[0],
             torch=torch.__version__, transformers=transformers.__version__, cuda=torch.version.cuda)
        a = torch.empty(2**30, dtype=torch.int8, device=dev); b = torch.empty_like(a)
        emit(kind='copy', bytes_per_second=2 * 2**30 / timed(lambda: b.copy_(a), 10))
        x = torch.randn(8192, 8192, device=dev, dtype=torch.bfloat16)
        emit(kind='matmul', n=8192, flops=2 * 8192**3 / timed(lambda: x @ x, 10))

def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for t in ([64] if TINY else [512, 1024, 2048, 4096, 8192]):
        for name, be in (('flash', SDPBackend.FLASH_ATTENTION), ('math', SDPBackend.MATH)):
            for back in (False, True):
                with guard('attention', backend=name, tokens=t) as ok:
                    if not ok: return
                    q, k, v = (torch.randn(1, 24, t, 64, device=dev, dtype=torch.bfloat16, requires_grad=back) for _ in range(3))
                    with sdpa_kernel(be):
                        def f():
                            o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                            if back: o.sum().backward()
                        s = timed(f, 10)
                    emit(kind='attention', backend=name, tokens=t, heads=24, width=64, backward=back, seconds=s, peak=peak())
            # As plain modules write it: scores, mask, softmax in separate kernels.
        for back in (False, True):
            with guard('attention', backend='eager', tokens=t) as ok:
                if not ok: return
                q, k, v = (torch.randn(1, 24, t, 64, device=dev, dtype=torch.bfloat16, requires_grad=back) for _ in range(3))
                mask = torch.full((t, t), float('-inf'), device=dev, dtype=torch.bfloat16).triu(1)
                def g():
                    s = q @ k.transpose(-1, -2) / 8 + mask
                    o = torch.softmax(s, -1, dtype=torch.float32).to(q.dtype) @ v
                    if back: o.sum().backward()
                emit(kind='attention', backend='eager', tokens=t, heads=24, width=64, backward=back, seconds=timed(g, 10), peak=peak())

@torch.no_grad()
def serve(name, batches=(1, 32), prefill=((1, 2048), (1, 8192), (8, 2048)), steps=24, context=512):
    with guard('serve', model=name) as ok:
        if not ok: return
        m = make(name, torch.bfloat16).eval(); n = params(m); w = torch.cuda.memory_allocated() if cuda else 0
        V = m.config.vocab_size; P = getattr(m.config, 'max_position_embeddings', 1024)
        for b, t in prefill:
            if t > P: continue
            with guard('prefill', model=name, batch=b, tokens=t) as ok2:
                if not ok2: break
                ids = torch.randint(V, (b, t), device=dev)
                s = timed(lambda: m(input_ids=ids, use_cache=True, logits_to_keep=1), 3)
                emit(kind='prefill', model=name, parameters=n, batch=b, tokens=t, seconds=s, tokens_per_second=b * t / s, peak=peak())
        for b in batches:
            with guard('decode', model=name, batch=b) as ok2:
                if not ok2: break
                ids = torch.randint(V, (b, context), device=dev)
                free()
                out = m(input_ids=ids, use_cache=True, logits_to_keep=1); cache = out.past_key_values
                one = torch.randint(V, (b, 1), device=dev)
                def step():
                    m(input_ids=one, past_key_values=cache, use_cache=True)
                for _ in range(4): step()
                sync(); s0 = time.perf_counter()
                for _ in range(steps): step()
                sync(); s = (time.perf_counter() - s0) / steps
                emit(kind='decode', model=name, parameters=n, mode='eager', batch=b, context=context + steps // 2, seconds=s, tokens_per_second=b / s, peak=peak(), weights=w)
                del cache, out
            with guard('decode', model=name, batch=b, mode='graph') as ok2:
                if not ok2 or not cuda: break
                from transformers import StaticCache
                cache = StaticCache(config=m.config, max_cache_len=context + 64)
                ids = torch.randint(V, (b, context), device=dev)
                pos = torch.arange(context, device=dev)
                kw = dict(past_key_values=cache, use_cache=True, logits_to_keep=1)
                try: m(input_ids=ids, cache_position=pos, **kw)
                except TypeError: m(input_ids=ids, **kw)
                one = torch.randint(V, (b, 1), device=dev); p1 = torch.full((1,), context, device=dev); pid = torch.full((b, 1), context, device=dev)
                mask = None
                def run(): return m(input_ids=one, cache_position=p1, position_ids=pid, past_key_values=cache, use_cache=True).logits
                st = torch.cuda.Stream(); st.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(st):
                    for _ in range(3): run()
                torch.cuda.current_stream().wait_stream(st)
                g = torch.cuda.CUDAGraph()
                with torch.cuda.graph(g): run()
                s = timed(g.replay, 20)
                emit(kind='decode', model=name, parameters=n, mode='cuda graph', batch=b, context=context, seconds=s, tokens_per_second=b / s, peak=peak(), weights=w)
                del g, cache
        del m

def train(name, batch, tokens, precision, checkpointing, attn='sdpa', lora=0, optimizer='adamw', steps=3):
    what = dict(model=name, batch=batch, tokens=tokens, precision=precision, checkpointing=checkpointing, attention=attn, lora=lora, optimizer=optimizer)
    with guard('train', **what) as ok:
        if not ok: return
        free()
        m = make(name, torch.float32 if precision == 'mixed' else torch.bfloat16, attn)
        n = params(m); trainable = n
        if lora:
            from peft import LoraConfig, get_peft_model
            m = get_peft_model(m, LoraConfig(r=lora, lora_alpha=16, target_modules='all-linear', task_type='CAUSAL_LM'))
            m.print_trainable_parameters()
        m.train()
        if checkpointing:
            m.gradient_checkpointing_enable(gradient_checkpointing_kwargs={'use_reentrant': False})
            if lora: m.enable_input_require_grads()
        m.config.use_cache = False
        ps = [p for p in m.parameters() if p.requires_grad]; trainable = sum(p.numel() for p in ps)
        opt = torch.optim.SGD(ps, 1e-4) if optimizer == 'sgd' else torch.optim.AdamW(ps, 1e-4, fused=cuda)
        ids = torch.randint(m.config.vocab_size, (batch, tokens), device=dev)
        ctx = (lambda: torch.autocast(dev, torch.bfloat16)) if precision == 'mixed' else contextlib.nullcontext
        marks = {}
        def step():
            with ctx(): loss = m(input_ids=ids, labels=ids).loss
            loss.backward(); opt.step(); opt.zero_grad(set_to_none=True)
        step(); sync()
        state = torch.cuda.memory_allocated() if cuda else 0
        if cuda: torch.cuda.reset_peak_memory_stats()
        times = []
        for _ in range(steps):
            s = time.perf_counter(); step(); sync(); times.append(time.perf_counter() - s)
        s = sorted(times)[len(times) // 2]
        emit(kind='train', parameters=n, trainable=trainable, seconds=s, tokens_per_second=batch * tokens / s, peak=peak(), reserved=reserved(), state=state, **what)
        del m, opt, ps

dtypes = 1
hardware(); attention()
if TINY:
    serve('minimind2-small-26m', (1,), ((1, 64),), 2, 16); train('gpt2-124m', 1, 32, 'mixed', True); train('gpt2-124m', 1, 32, 'bf16', False, lora=4)
    sys.exit()
serve('minimind2-small-26m'); serve('gpt2-124m', prefill=((1, 1024), (8, 1024))); serve('qwen3-0.6b'); serve('qwen3-1.7b')
train('minimind2-small-26m', 32, 512, 'bf16', False); train('minimind2-small-26m', 32, 512, 'mixed', False)
train('gpt2-124m', 8, 1024, 'mixed', False); train('gpt2-124m', 8, 1024, 'mixed', False, 'eager'); train('gpt2-124m', 8, 1024, 'bf16', False)
train('gpt2-124m', 8, 1024, 'mixed', True)
for c in (False, True):
    train('qwen3-0.6b', 4, 2048, 'bf16', c); train('qwen3-0.6b', 4, 2048, 'mixed', c)
    train('qwen3-1.7b', 2, 2048, 'bf16', c); train('qwen3-1.7b', 2, 2048, 'mixed', c)
train('qwen3-1.7b', 2, 2048, 'bf16', False, 'eager'); train('qwen3-1.7b', 2, 2048, 'bf16', True, 'eager')
train('qwen3-1.7b', 1, 8192, 'bf16', True); train('qwen3-1.7b', 2, 2048, 'bf16', False, optimizer='sgd')
train('qwen3-4b', 1, 2048, 'bf16', False); train('qwen3-4b', 4, 2048, 'bf16', True)
for c in (False, True):
    train('qwen3-1.7b', 2, 2048, 'bf16', c, lora=16); train('qwen3-8b', 1, 2048, 'bf16', c, lora=16)
train('qwen3-8b', 4, 2048, 'bf16', True, lora=64); train('qwen3-8b', 1, 512, 'bf16', False, lora=16)
train('qwen3-8b', 1, 2048, 'bf16', True)
serve('qwen3-8b'); serve('llama-3.1-8b'); serve('qwen3-30b-a3b-12-layers', (1, 32), ((1, 2048), (8, 2048)))
train('qwen3-30b-a3b-12-layers', 1, 2048, 'bf16', True, optimizer='sgd'); train('qwen3-4b', 2, 4096, 'bf16', True)
serve('qwen3-4b')
emit(kind='end')
