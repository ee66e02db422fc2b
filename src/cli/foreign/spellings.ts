/** Common names of choices, as people know them from other tools. */

import { parseDtype } from '../../base/tensor/dtype.js';
import { ownValue } from '../../base/values.js';

/** A name in lower case, without characters between words. */
export const foldedName = (text: string): string => text.toLowerCase().replaceAll(/[-_ .]/g, '');

/** Common names of choices, by flag. */
const CHOICES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  format: { md: 'markdown', text: 'table', txt: 'table', plain: 'table' },
  for: {
    ...{ train: 'training', pretrain: 'training', pretraining: 'training', full: 'training' },
    ...{ serve: 'serving', inference: 'serving', infer: 'serving' },
    ...{ peft: 'lora', finetune: 'lora', finetuning: 'lora', sft: 'lora' },
  },
  precision: {
    ...{ fp32: 'float32', f32: 'float32', full: 'float32', float: 'float32', '32': 'float32' },
    ...{ fp16: 'mixed', amp: 'mixed', half: 'mixed', bf16mixed: 'mixed' },
    ...{ float16: 'mixed', fp16mixed: 'mixed', '16mixed': 'mixed' },
    ...{ bfloat16: 'bf16', bf16true: 'bf16', purebf16: 'bf16' },
    ...{ float8: 'fp8', f8: 'fp8', fp8e4m3: 'fp8', fp8hybrid: 'fp8' },
  },
  recompute: {
    ...{
      all: 'full',
      yes: 'full',
      on: 'full',
      true: 'full',
      off: 'none',
      no: 'none',
      false: 'none',
    },
    uniform: 'full',
    ...{ op: 'operations', ops: 'operations', perop: 'operations', selectiveop: 'operations' },
    ...{ compile: 'compiled', mincut: 'compiled', torchcompile: 'compiled' },
  },
  optimizer: {
    ...{ adam: 'adamw', adam8bit: 'adamw-8bit', adam8: 'adamw-8bit', adamw8: 'adamw-8bit' },
    ...{
      '8bitadam': 'adamw-8bit',
      adamwtorch: 'adamw',
      adamwtorchfused: 'adamw-fused',
      adamwapexfused: 'adamw-fused',
      adamwtorchnpufused: 'adamw-fused',
      fusedadam: 'adamw-fused',
      fusedadamw: 'adamw-fused',
      adamwhf: 'adamw',
      adamwtorch8bit: 'adamw-8bit',
    },
    ...{ adamwbnb8bit: 'adamw-8bit', adamwbnb: 'adamw-8bit', momentum: 'sgd-momentum' },
    ...{ pagedadam: 'paged-adamw', pagedadamw: 'paged-adamw', pagedadamw32bit: 'paged-adamw' },
    ...{ pagedadam8bit: 'paged-adamw-8bit', pagedadamw8bit: 'paged-adamw-8bit' },
    ...{ lion32bit: 'lion', lion8bit: 'lion-8bit', pagedlion8bit: 'lion-8bit' },
    ...{ galoreadamw: 'galore', galoreadamw8bit: 'galore-8bit', galore8bit: 'galore-8bit' },
  },
  attention: {
    ...{ flash: 'fused', flashattention: 'fused', flashattention2: 'fused', flashattn: 'fused' },
    ...{ sdpa: 'fused', eager: 'plain', fa2: 'fused', flashattention3: 'fused' },
  },
  zero: { zero1: '1', zero2: '2', zero3: '3', stage1: '1', stage2: '2', stage3: '3' },
  tie: {
    ...{ embedding: 'embed', embeddings: 'embed', embedtokens: 'embed', wte: 'embed' },
    ...{ lmhead: 'head', output: 'head', average: 'mean', avg: 'mean' },
  },
  to: { lora: 'low-rank', unshared: 'per-layer', sinusoidal: 'sincos', sine: 'sincos' },
  dtype: { same: 'keep', none: 'keep' },
  container: { torch: 'pt', pytorch: 'pt', pth: 'pt', bin: 'pt', st: 'safetensors' },
  engine: { onnxruntime: 'onnx', ort: 'onnx', tensorflow: 'tfjs', tf: 'tfjs' },
  device: { nvidia: 'cuda', 'cuda:0': 'cuda', cuda0: 'cuda', dml: 'directml' },
  extend: { zeros: 'zero', tile: 'repeat' },
  shell: { pwsh: 'powershell', ps: 'powershell', ps1: 'powershell', sh: 'bash' },
  kind: { v1: 'linear', v2: 'elastic' },
  sort: { params: 'parameters', size: 'parameters', balanced: 'balance' },
  only: {
    ...{ cuda: 'onnx:cuda', webgpu: 'onnx:webgpu', directml: 'onnx:dml', coreml: 'onnx:coreml' },
    ...{ onnx: 'onnx:cpu', cpu: 'onnx:cpu', tfjs: 'tfjs:cpu', wasm: 'tfjs:wasm' },
    ...{ kvcache: 'cache', speed: 'timing', time: 'timing', causal: 'causality' },
  },
  runtime: {
    ollama: 'llama.cpp',
    lmstudio: 'llama.cpp',
    koboldcpp: 'llama.cpp',
    llamaserver: 'llama.cpp',
    trtllm: 'tensorrt-llm',
    trt: 'tensorrt-llm',
    hf: 'transformers',
    huggingface: 'transformers',
  },
  emit: {
    llamacpp: 'llama-server',
    ollama: 'llama-server',
    lmstudio: 'llama-server',
    koboldcpp: 'llama-server',
    fsdp: 'accelerate',
    ds: 'deepspeed',
  },
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
  const common = ownValue(CHOICES, flag);
  const meant = own ?? (common && ownValue(common, folded));
  const chosen = meant ?? parseDtype(text);
  return chosen !== undefined && options.includes(chosen) ? chosen : undefined;
}
