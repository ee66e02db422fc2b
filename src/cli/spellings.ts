/** Common names of flags, choices and commands, as people know them from other tools. */
import { nearest } from '../config/nearest.js';
import { parseDtype } from '../tensor/dtype.js';

/** Ignores case, and characters between words. */
export const foldedName = (text: string): string => text.toLowerCase().replaceAll(/[-_ .]/g, '');

/** Flags with the names that other tools have for them. `name=value` is a flag with its value. */
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  context:
    'ctx,context-length,context-size,context-window,ctx-size,ctx-len,n-ctx,num-ctx,seq,seq-len,seqlen,seq-length,sequence-length,max-seq-len,max-model-len,max-length,length,cutoff-len'.split(
      ',',
    ),
  batch: 'batch-size,bs,batchsize,n-batch,max-num-seqs'.split(','),
  'micro-batch': ['micro-batch-size', 'mbs', 'per-device-train-batch-size', 'batch-size'],
  'global-batch': ['global-batch-size', 'gbs'],
  dtype: 'type,torch-dtype,data-type,quant,quantization,quantize,weight-dtype,bits,load-in'.split(
    ',',
  ),
  weights: 'quant,quantize,quantization,weight-dtype,bits,weight-form'.split(','),
  'cache-dtype': ['kv-cache-dtype', 'kv-dtype', 'cache-type', 'kv-type', 'cache-type-k'],
  'max-params': ['params', 'parameters', 'num-params', 'budget', 'max-parameters', 'size'],
  'max-memory': ['memory', 'vram', 'mem', 'max-mem', 'max-vram', 'ram'],
  gpus: 'gpu-count,num-gpus,n-gpus,ngpus,n-gpu,gpu-num,gpu-number,devices,nproc'.split(','),
  gpu: ['card', 'gpu-type', 'gpu-name', 'accelerator', 'device', 'hardware'],
  'tensor-parallel': ['tp', 'tensor-parallel-size', 'tp-size', 'tensor-model-parallel-size'],
  'pipeline-parallel': ['pp', 'pipeline-parallel-size', 'pp-size', 'pipeline-model-parallel-size'],
  users: 'concurrency,concurrent,concurrent-users,parallel,requests,user,clients'.split(','),
  'prompt-tokens': ['prompt', 'input-tokens', 'prompt-length', 'input-len', 'prompt-len', 'input'],
  'output-tokens': 'max-tokens,max-new-tokens,new-tokens,output-len,output-length,n-predict'.split(
    ',',
  ),
  'train-tokens': ['tokens', 'training-tokens', 'num-tokens', 'dataset-tokens'],
  qps: ['rps', 'request-rate', 'requests-per-second'],
  recompute: 'gradient-checkpointing,activation-checkpointing,checkpointing,recomputation'.split(
    ',',
  ),
  zero: ['zero-stage', 'stage', 'deepspeed'],
  optimizer: ['optim', 'opt', 'optimiser'],
  save: ['save-to', 'save-as', 'save-path', 'write-to'],
  row: ['write', 'pick', 'select'],
  output: 'out,output-file,outfile,o,file,save-to,save,output-path'.split(','),
  'format=csv': ['csv'],
  'format=markdown': ['markdown', 'md'],
  'format=table': ['table', 'text', 'plain'],
  force: ['overwrite', 'yes', 'f', 'y'],
  quiet: ['silent', 's'],
  explain: ['verbose', 'why', 'v'],
  details: ['verbose', 'detail', 'long', 'all', 'full'],
  vocab: ['vocab-size', 'vocabulary', 'vocabulary-size'],
  depth: ['layers', 'num-layers', 'num-hidden-layers', 'n-layer', 'n-layers'],
  width: ['hidden-size', 'hidden', 'dim', 'd-model', 'n-embd'],
  family: ['model-type', 'arch', 'architecture', 'model-family'],
  to: ['layout', 'target-layout', 'mode', 'srte'],
  'to=shared': ['shared', 'share'],
  'to=low-rank': ['low-rank', 'lowrank'],
  rank: ['r', 'lora-rank', 'rank-size'],
  ranks: ['rank', 'r'],
  tie: ['tie-embeddings', 'tie-word-embeddings', 'tied', 'tie-weights'],
  'dry-run': ['dry', 'dryrun', 'plan', 'n'],
  check: ['verify', 'strict', 'validate', 'fail'],
  prove: ['verify', 'test', 'compare'],
  'shard-size': ['max-shard-size', 'shards'],
  against: ['compare', 'compare-with', 'reference', 'ref', 'with', 'vs'],
  checkpoint: ['weights', 'ckpt', 'model', 'load', 'model-path'],
  only: ['checks', 'tests', 'test', 'run'],
  set: ['override', 'config-override', 'overrides', 'cfg', 'c', 'd'],
  config: ['cfg', 'config-file', 'conf'],
  sort: ['sort-by', 'order', 'order-by'],
  columns: ['column', 'cols', 'fields', 'show'],
  filter: ['grep', 'name', 'pattern', 'include', 'match'],
  tensors: ['tensor', 'weights', 'all', 'list'],
  threads: ['n-threads', 'num-threads', 'cpus', 'cores', 'jobs', 't', 'j'],
  'list-gpus': ['gpus-list', 'list', 'show-gpus', 'gpu-list'],
  trained: ['original-context', 'train-context', 'original-max-position-embeddings'],
  factor: ['scale', 'rope-factor', 'scaling-factor', 'rope-scale'],
  top: ['limit', 'n', 'num', 'count', 'max-results', 'k'],
  'init-seed': ['init-base-seed', 'base-seed', 'param-seed'],
  'init-range': ['range', 'uniform-range'],
  'init-std': ['std', 'initializer-range', 'init-deviation'],
  'init-mean': ['mean'],
  'group-size': ['gz', 'groups', 'group'],
  hidden: ['hidden-size', 'emb-size', 'dim', 'd-model'],
  'world-size': ['ranks', 'w', 'num-ranks'],
  lr: ['learning-rate', 'rate', 'projector-lr'],
  'linear-lr': ['linear-learning-rate', 'lr-linear'],
  'elastic-lr': ['elastic-learning-rate', 'mlp-lr', 'mlp-learning-rate', 'lr-elastic'],
  student: ['student-width', 'width', 'student-size'],
};

/** The flag among `known` that other tools call `name`, perhaps with its value. */
export function nearestFlag(name: string, known: readonly string[]): string | undefined {
  const folded = foldedName(name);
  return Object.keys(FLAGS).find(
    (flag) =>
      known.includes(flag.split('=', 1)[0] ?? '') &&
      FLAGS[flag]?.some((each) => foldedName(each) === folded),
  );
}

/** Common names of choices, by flag. */
const CHOICES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  format: { md: 'markdown', text: 'table', txt: 'table', plain: 'table' },
  for: { train: 'training', serve: 'serving', inference: 'serving', infer: 'serving' },
  precision: {
    ...{ fp32: 'float32', f32: 'float32', full: 'float32', float: 'float32', '32': 'float32' },
    ...{ bf16: 'mixed', fp16: 'mixed', amp: 'mixed', half: 'mixed', bf16mixed: 'mixed' },
    ...{ bfloat16: 'mixed', float16: 'mixed', fp16mixed: 'mixed', '16mixed': 'mixed' },
  },
  recompute: { all: 'full', yes: 'full', on: 'full', true: 'full', off: 'none', no: 'none' },
  optimizer: { adam: 'adamw', adam8bit: 'adamw-8bit', momentum: 'sgd-momentum' },
  attention: { flash: 'fused', flashattention: 'fused', sdpa: 'fused', eager: 'plain' },
  zero: { zero1: '1', zero2: '2', zero3: '3', stage1: '1', stage2: '2', stage3: '3', fsdp: '3' },
  tie: {
    ...{ embedding: 'embed', embeddings: 'embed', embedtokens: 'embed', wte: 'embed' },
    ...{ lmhead: 'head', output: 'head', average: 'mean', avg: 'mean' },
  },
  to: { lora: 'low-rank', unshared: 'per-layer', sinusoidal: 'sincos', sine: 'sincos' },
  dtype: { same: 'keep', none: 'keep' },
  container: { torch: 'pt', pytorch: 'pt', pth: 'pt', bin: 'pt', st: 'safetensors' },
  engine: { onnxruntime: 'onnx', ort: 'onnx', tensorflow: 'tfjs', tf: 'tfjs' },
  device: { nvidia: 'cuda', dml: 'directml' },
  extend: { zeros: 'zero', tile: 'repeat' },
  shell: { pwsh: 'powershell', ps: 'powershell', ps1: 'powershell' },
  family: { gemma3: 'gemma3_text', gptneox: 'gpt_neox', pythia: 'gpt_neox' },
};

/** The choice that `text` means, in any case, by a common name, or by any name of an element type. */
export function nearestValue(
  flag: string,
  text: string,
  options: readonly string[],
): string | undefined {
  const folded = foldedName(text.trim());
  const own = options.find((each) => foldedName(each) === folded);
  const common = CHOICES[flag];
  const meant = own ?? (common && Object.hasOwn(common, folded) ? common[folded] : undefined);
  const chosen = meant ?? parseDtype(text);
  return chosen !== undefined && options.includes(chosen) ? chosen : undefined;
}

/** First words that people try, with the command line they mean. */
const COMMANDS: Readonly<Record<string, string>> = {
  convert: 'convert-checkpoint',
  count: 'profile',
  params: 'profile',
  parameters: 'profile',
  size: 'profile',
  info: 'profile',
  summary: 'profile',
  show: 'profile',
  estimate: 'fit',
  memory: 'fit',
  vram: 'fit',
  serve: 'fit',
  gpu: 'fit --list-gpus',
  gpus: 'fit --list-gpus',
  test: 'quick-test',
  run: 'quick-test',
  bench: 'quick-test',
  check: 'validate',
  lint: 'validate',
  diff: 'compare',
  search: 'plan',
  design: 'plan',
  new: 'init',
  create: 'init',
  models: 'list',
  presets: 'list',
  ls: 'list',
  onnx: 'export',
  tensors: 'inspect',
  srte: 'compare-srte',
  devices: 'doctor',
  engines: 'doctor',
  version: '--version',
};

/** The command that `word` means: by a common name, as the beginning of a single one, or nearly spelled so. */
export function nearestCommand(word: string, known: readonly string[]): string | undefined {
  const folded = word.toLowerCase();
  if (Object.hasOwn(COMMANDS, folded)) return COMMANDS[folded];
  const longer = known.filter((each) => each.startsWith(folded));
  return longer.length === 1 ? longer[0] : nearest(word, known);
}
