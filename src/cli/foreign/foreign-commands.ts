/** Commands of other tools, and the lines that do the same here. Loaded with their flags. */
import type { Source } from './flags/flag-row.js';

/** Lines that a first word means, and the words. `$1` is an argument of theirs, and `$2.gguf` one that has this ending. */
type VerbRow = readonly [lines: readonly string[], words: string, sources: readonly Source[]];

/**
 * First words that people try, and the lines that they mean. Arguments without a place follow, and so do their flags. A
 * name of several words is a command of a program: `export onnx`.
 */
export const VERBS: readonly VerbRow[] = [
  [
    ['generate'],
    'cli,chat,sample,complete,inference,infer,talk,prompt,simple,generate-text,webchat,chat-cli,generate-full,' +
      'generate-adapter,generate-adapter-v2,generate-sequentially,generate-tp',
    ['llama.cpp', 'axolotl', 'llama-factory', 'nanogpt', 'mlx', 'vllm', 'speech'],
  ],
  [['generate', 'fit', 'quick-test'], 'run', ['ollama']],
  [
    [
      'convert-checkpoint $1 $2.gguf --dtype $3',
      'convert-checkpoint $1 $2 --quantize $3',
      'convert-checkpoint $1 $2 --dtype $3',
      'convert-checkpoint',
    ],
    'quantize,quant',
    ['llama.cpp', 'axolotl'],
  ],
  [['export $1 --save $2.onnx', 'convert-checkpoint'], 'convert', ['mlx', 'speech']],
  [
    ['convert-checkpoint'],
    'mlx-lm convert,convert-hf-to-gguf,to-gguf,shard,split,gguf-split,zero-to-fp32,consolidate,merge-weights,' +
      'merge-sharded-fsdp-weights,convert-srte,compress,convert-llama-weights-to-hf,dcp-to-torch,convert-to-litgpt,' +
      'convert-from-litgpt,convert-pretrained-checkpoint,lite auto-awq,lite auto-gptq,lite smooth-quant,convert-lit-checkpoint,ct2-transformers-converter,convert-gguf,dequantize,' +
      'convert-to-safetensors',
    [
      'llama.cpp',
      'deepspeed',
      'axolotl',
      'accelerate',
      'transformers',
      'litgpt',
      'ct2',
      'mlx',
      'speech',
    ],
  ],
  [
    ['convert-checkpoint $1 $3 --merge-lora $2', 'convert-checkpoint'],
    'merge-lora,merge-adapter,export-lora,merge,merge-and-unload,fuse,llamafactory-cli export,merge-peft',
    ['llama.cpp', 'axolotl', 'llama-factory', 'mlx', 'peft', 'litgpt'],
  ],
  [
    ['evaluate'],
    'eval,ppl,perplexity,lm-eval,score,lm-eval run,base-eval,chat-eval,litgpt evaluate',
    ['llama.cpp', 'lm-eval', 'llama-factory', 'axolotl', 'mlx', 'speech'],
  ],
  [
    ['train-plan'],
    'train,finetune,fine-tune,pretrain,sft,schedule,lora,dpo,finetune-lora,finetune-full,train-full-sft,train-pretrain,' +
      'finetune-adapter,finetune-adapter-v2,grpo,kto,rloo,reward,ppo,orpo,base-train,chat-sft,train-gpt,pretrain-gpt,' +
      'train-lora,train-dpo',
    ['axolotl', 'llama-factory', 'litgpt', 'trl', 'mlx', 'minimind', 'speech'],
  ],
  [
    ['profile'],
    'flops,kv-cache,count,params,parameters,size,info,summary,show,count-params,describe,stats,calflops,thop,' +
      'count-parameters,model-info,param-count',
    ['ollama', 'speech'],
  ],
  [['profile $1 --tensors'], 'netron,print,tree,torchinfo,torchsummary', ['speech']],
  [['draw'], 'visualize,graph,plot,diagram,architecture,torchview,torchviz', ['speech']],
  [
    ['data'],
    'tokenize,tokens,count-tokens,token-count,preprocess,dataset,tokenizer,prepare,preprocess-data',
    ['llama.cpp', 'axolotl', 'megatron', 'nanogpt', 'speech'],
  ],
  [
    ['fit'],
    'estimate,estimate-memory,memory,vram,serve,server,load,can-i-run,can-it-run,will-it-fit,memory-usage,deploy,speed,' +
      'throughput,requirements,text-generation-launcher,launch-server,trtllm-serve,api,api-server,how-many-gpus,' +
      'fit-params,cost,bench serve,bench-serving,serve api-server,genai-perf profile,koboldcpp,vllm-serve,openai-server',
    [
      ...([
        'accelerate',
        'llama.cpp',
        'ollama',
        'vllm',
        'sglang',
        'tgi',
        'trtllm',
        'lmstudio',
      ] as const),
      ...(['llama-factory', 'speech'] as const),
    ],
  ],
  [['fit --list-gpus'], 'gpu,gpus,list-gpus,hardware', ['speech']],
  [['quick-test'], 'test,smoke-test,sanity-check', ['speech']],
  [
    ['quick-test --only timing', 'fit'],
    'bench,benchmark,bench latency,bench throughput,bench-one-batch,batched-bench',
    ['llama.cpp', 'vllm', 'sglang', 'mlx'],
  ],
  [['validate'], 'check,lint,validate-config', ['speech']],
  [['compare'], 'diff,vs', ['speech']],
  [['plan'], 'search,design,optimize', ['speech']],
  [['fit --for lora', 'train-plan'], 'unsloth-cli', ['unsloth']],
  [['init $1 --save $2'], 'tune cp', ['torchtune']],
  [['init $1 --save -'], 'tune cat', ['torchtune']],
  [['init'], 'new,create', ['ollama', 'speech']],
  [['list'], 'models,presets,ls', ['ollama', 'lmstudio', 'torchtune']],
  [
    ['export $1 --save $2.onnx', 'export'],
    'onnx,to-onnx,export onnx,torch2onnx,export-onnx',
    ['optimum', 'speech'],
  ],
  [['inspect --tensors'], 'tensors,keys,state-dict', ['speech']],
  [['inspect'], 'cat,dump,gguf-dump,gguf,safetensors', ['llama.cpp', 'speech']],
  [['compare-srte'], 'srte', ['speech']],
  [
    ['doctor'],
    'devices,engines,env,ps,nvidia-smi,rocm-smi,collect-env,system-info,ds-report,check-env',
    ['ollama', 'llama-factory', 'transformers', 'accelerate', 'lmstudio', 'speech'],
  ],
  [['--version'], 'version', ['llama-factory', 'lmstudio', 'speech']],
];

/** Words for a download, and for changes to a store of models. */
export const DOWNLOADS: ReadonlySet<string> = new Set(['pull', 'download', 'get', 'fetch']);
export const OF_A_STORE: ReadonlySet<string> = new Set([
  ...['push', 'rm', 'remove', 'delete', 'cp', 'stop', 'unload', 'signin', 'login', 'upload'],
]);

/** Programs whose commands are written after their names: `ollama run`, `vllm serve`. */
export const PROGRAMS: ReadonlySet<string> = new Set([
  ...[
    'ollama',
    'vllm',
    'sglang',
    'lms',
    'axolotl',
    'accelerate',
    'llamafactory-cli',
    'mlx-lm',
    'deepspeed',
    'hf',
  ],
  ...[
    'huggingface-cli',
    'optimum-cli',
    'tune',
    'lm-eval',
    'litgpt',
    'trl',
    'llama',
    'lmdeploy',
    'genai-perf',
    'transformers',
    'transformers-cli',
  ],
]);

/** A flag of a program that has another meaning here. */
interface ProgramFlag {
  /** A name of the meaning that it has there. */
  readonly name: string;
  /** Flag that says the same with a value. */
  readonly unless?: string;
  /** Values with that meaning. */
  readonly only?: RegExp;
}

export const PROGRAM_FLAGS: Readonly<Record<string, Readonly<Record<string, ProgramFlag>>>> = {
  'mlx-lm': {
    // The layers that train, not those that the model has.
    '--num-layers': { name: '--lora-layers' },
    '-q': { name: '--int4', unless: '--q-bits' },
  },
  // The share of a model on the GPU.
  lms: { '--gpu': { name: '--gpu-offload', only: /^(?:max|auto|off|[01](?:\.\d+)?)$/ } },
};
