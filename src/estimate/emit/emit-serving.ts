/** The command of a server for a plan. */
import { hasLlamaCache, llamaFlags } from '../../base/text/llama-flags.js';
import { present } from '../../base/values.js';
import type { FitResult } from '../fit/fits.js';
import { takenShare } from '../fit/serving/replica-memory.js';
import { gpusOfReplica } from '../fit/serving/serving-axes.js';
import { RUNTIMES } from '../fit/serving/throughput/runtimes.js';
import { asFlag, shellText } from './emit-text.js';
import type { EmitName, Emitted, EmittedModel } from './emitted.js';
import { EMIT_PROGRAMS } from './emitted.js';
import { type Machines, machinesOf } from './machines.js';

type Serving = NonNullable<FitResult['serving']>;

/** A plan as flags, and what has none. */
interface ServerCommand {
  readonly program: readonly string[];
  /** Names without dashes, each with its values. */
  readonly flags: readonly (readonly string[])[];
  readonly without: readonly string[];
  readonly notes?: readonly string[];
}

const COMMANDS = {
  'llama-server': llamaServer,
  vllm,
  sglang,
} as const satisfies Partial<
  Record<EmitName, (serving: Serving, model: EmittedModel) => ServerCommand>
>;

/** @param model As `emittedModel` makes it. @param lead First comment: the command that made it. */
export function emitServing(
  name: keyof typeof COMMANDS,
  { serving }: FitResult & { readonly serving: Serving },
  model: EmittedModel,
  lead: readonly string[],
): Emitted {
  const { program, flags, without, notes = [] } = COMMANDS[name](serving, model);
  const common = present([
    serving.setting.prefixCache
      ? `prefix cache of ${serving.setting.prefixCache} of a prompt`
      : false,
    serving.setting.draft !== undefined &&
      `speculative decoding with ${serving.setting.draft.name}: its flags differ between versions`,
    serverCount(serving) > 1 &&
      serving.setting.prefillGpus === undefined &&
      `${serverCount(serving)} replicas: start one server on the GPUs of each`,
  ]);
  const all = [...without, ...common];
  const { version } = EMIT_PROGRAMS[name];
  return {
    program: name,
    version,
    text: shellText(
      [...lead, `flags: ${version}`, ...notes, ...all.map((each) => `no counterpart: ${each}`)],
      program,
      flags.map(([flag = '', ...values]) => [asFlag(flag), ...values]),
    ),
    withoutCounterpart: all,
  };
}

function llamaServer(serving: Serving, model: EmittedModel): ServerCommand {
  const { setting, places } = serving;
  const { cluster, cacheDtype, weights, tensorParallel } = setting;
  const isFile = /\.gguf$/i.test(model.name);
  const sequences = sequencesOf(serving);
  const gpus = serverCount(serving) === 1 ? cluster.gpus : tensorParallel;
  const isProcessor = cluster.gpu.kind === 'processor';
  const type = weights.dtype;
  const flags = llamaFlags({ setting, sequences, places });
  // A placement divides the layers; without one, the GPUs of a kind have equal parts.
  const split =
    gpus <= 1
      ? []
      : places
        ? [['split-mode', 'layer']]
        : [
            ['split-mode', tensorParallel > 1 ? 'row' : 'layer'],
            ['tensor-split', Array(gpus).fill('1').join(',')],
          ];
  return {
    program: ['llama-server'],
    notes: isFile
      ? []
      : [
          `MODEL.gguf: the weights of ${model.name} in ${type}, as llama-quantize writes them`,
          ...present([model.note]),
        ],
    flags: [
      ['model', isFile ? model.name : 'MODEL.gguf'],
      ...(places ? [] : [['gpu-layers', isProcessor ? '0' : 'all']]),
      ...split,
      ...flags.map(({ name, value }) => (value === undefined ? [name] : [name, value])),
      // The plan is kept as it is; its own number of layers differs.
      ['fit', 'off'],
    ],
    without: present([
      ...axesWithout(serving),
      !hasLlamaCache(cacheDtype) && `cache in ${cacheDtype}`,
      setting.runtime?.isMemoryChosen && `share of the memory ${setting.runtime.memoryShare}`,
    ]),
  };
}

/** Axes that llama.cpp does not have. */
const axesWithout = ({ setting }: Serving): (string | false)[] => [
  (setting.dataParallelAttention ?? 1) > 1 &&
    `${setting.dataParallelAttention} copies of the attention`,
  (setting.expertParallel ?? 1) > 1 && `experts on ${setting.expertParallel} GPUs`,
  (setting.contextParallel ?? 1) > 1 && `caches in ${setting.contextParallel} parts`,
  setting.prefillGpus !== undefined && `${setting.prefillGpus} GPUs that only read prompts`,
];

/** Notes on the servers that only read prompts. The command itself is that of a server that decodes. */
function prefillNotes(serving: Serving, changed: string, router: string): readonly string[] {
  const { prefillGpus } = serving.setting;
  if (prefillGpus === undefined) return [];
  const readers = Math.floor(prefillGpus / gpusOfReplica(serving.setting));
  return [
    `start ${serverCount(serving)} of these to decode, and ${readers} to read prompts with ${changed}; each on GPUs of its own`,
    `clients ask ${router}`,
  ];
}

/** Connector of caches in vLLM (vllm-project/vllm, docs/features/nixl_connector_usage.md). */
const connector = (role: 'kv_producer' | 'kv_consumer'): string =>
  JSON.stringify({ kv_connector: 'NixlConnector', kv_role: role });

/** Types of weights that vLLM and SGLang make of 16 bits when they load a model. */
const ONLINE: Readonly<Record<string, string>> = { f8: 'fp8' };

const COMPUTED: Readonly<Record<string, string>> = {
  f32: 'float32',
  f16: 'float16',
  bf16: 'bfloat16',
};

const CACHE_TYPES: Readonly<Record<string, { readonly vllm: string; readonly sglang: string }>> = {
  f8_e4m3: { vllm: 'fp8_e4m3', sglang: 'fp8_e4m3' },
  f8_e5m2: { vllm: 'fp8_e5m2', sglang: 'fp8_e5m2' },
};

/** Flags that both servers of the hub's models share: type of weights and of the cache. */
function typesOf({ setting }: Serving, name: 'vllm' | 'sglang') {
  const { weights, cacheDtype } = setting;
  const type = weights.dtype;
  const computed = COMPUTED[type];
  const cache = CACHE_TYPES[cacheDtype]?.[name];
  const isStored = 'stored' in weights;
  return {
    flags: [
      ...(computed === undefined ? [] : [['dtype', computed]]),
      ...(ONLINE[type] === undefined || isStored ? [] : [['quantization', ONLINE[type] as string]]),
      ...(cache === undefined ? [] : [['kv-cache-dtype', cache]]),
    ],
    without: present([
      computed === undefined &&
        ONLINE[type] === undefined &&
        !isStored &&
        `weights in ${type}: serve a checkpoint that is stored so`,
      cache === undefined && /8|4/.test(cacheDtype) && `cache in ${cacheDtype}`,
    ]),
  };
}

/** Sequences of a replica at a time. */
const sequencesOf = (serving: Serving): number =>
  Math.max(serving.setting.batch, Math.ceil((serving.users.asked ?? 1) / serverCount(serving)));

/** Whether the user said how many sequences a server has; without that, it takes as many as there is room for. */
const isCountAsked = (serving: Serving): boolean =>
  serving.users.asked !== null || serving.setting.batch > 1;

/** Share of the memory for a program; undefined where its default is enough. */
function memoryShareOf(
  { setting: { runtime }, fit: { total, workspace, capacity } }: Serving,
  name: 'vllm' | 'sglang',
): number | undefined {
  if (runtime?.isMemoryChosen) return runtime.memoryShare;
  const { memoryShare } = RUNTIMES[name];
  // SGLang keeps weights and caches alone in its share, and the workspace in the rest.
  const { value } = workspace.expected;
  const kept = { value: total.expected.value - value };
  const taken = name === 'vllm' ? total : { expected: kept, upper: kept };
  const share = takenShare(taken, capacity.value, { memoryShare, isMemoryChosen: false });
  return share > memoryShare ? share : undefined;
}

const shareFlag = (flag: string, share: number | undefined): string[][] =>
  share === undefined ? [] : [[flag, String(share)]];

/** Additions by the user for a replica on several machines, each of which starts the same program. */
function machineNotes(
  { setting }: Serving,
  add: (machines: Machines) => string,
): readonly string[] {
  const machines = machinesOf(gpusOfReplica(setting), setting.cluster);
  const { count, each } = machines;
  return count === 1
    ? []
    : [`a replica has ${count} machines with ${each} GPUs each (assumed)`, add(machines)];
}

/** Servers of the plan. A placement is one, on all GPUs. */
const serverCount = ({ users, places }: Serving): number => (places ? 1 : users.replicas);

/** A placement that was asked for; what is only proposed is no part of the plan. */
const placesNote = ({ places }: Serving): string | false =>
  places?.isAsked === true &&
  (places.cardLayers && places.gpuLayers === places.layers
    ? `layers of the GPUs ${places.cardLayers.join(', ')}`
    : `${places.gpuLayers} of ${places.layers} layers on the GPUs, ${places.cpuExperts} layers with experts in system memory`);

function vllm(serving: Serving, model: EmittedModel): ServerCommand {
  const { context, tensorParallel, runtime, prefillGpus } = serving.setting;
  const { dataParallelAttention = 1, expertParallel = 1 } = serving.setting;
  const { pipelineParallel = 1, contextParallel = 1 } = serving.setting;
  const { flags, without } = typesOf(serving, 'vllm');
  return {
    program: ['vllm', 'serve', model.name],
    flags: [
      ['tensor-parallel-size', String(tensorParallel)],
      // vllm-project/vllm, docs/serving/expert_parallel_deployment.md, context_parallel_deployment.md
      ...(pipelineParallel > 1 ? [['pipeline-parallel-size', String(pipelineParallel)]] : []),
      ...(dataParallelAttention > 1 ? [['data-parallel-size', String(dataParallelAttention)]] : []),
      ...(expertParallel > 1 ? [['enable-expert-parallel']] : []),
      ...(contextParallel > 1 ? [['decode-context-parallel-size', String(contextParallel)]] : []),
      ['max-model-len', String(context)],
      // Of each group, which has a scheduler of its own.
      ...(isCountAsked(serving)
        ? [['max-num-seqs', String(Math.ceil(sequencesOf(serving) / dataParallelAttention))]]
        : []),
      ...shareFlag('gpu-memory-utilization', memoryShareOf(serving, 'vllm')),
      ...flags,
      ...(runtime?.launching === 'eager' && runtime.name === 'vllm' ? [['enforce-eager']] : []),
      ...(prefillGpus === undefined ? [] : [['kv-transfer-config', connector('kv_consumer')]]),
    ],
    notes: present([
      model.note,
      ...prefillNotes(
        serving,
        words(['kv-transfer-config', `'${connector('kv_producer')}'`]),
        'a proxy, as tests/v1/kv_connector/nixl_integration/toy_proxy_server.py of vLLM',
      ),
      ...machineNotes(serving, ({ each, count }) =>
        // vllm-project/vllm, docs/serving/data_parallel_deployment.md, parallelism_scaling.md
        dataParallelAttention > 1
          ? `start it on each, and add ${words(
              ['data-parallel-size-local', Math.max(1, Math.floor(dataParallelAttention / count))],
              ['data-parallel-address', 'FIRST_HOST'],
            )}; on all but the first also ${words(['headless'], ['data-parallel-start-rank', 'RANK'])}`
          : `start it once, in a Ray cluster of them with ${each} GPUs on each, and add ${words(['distributed-executor-backend', 'ray'])}`,
      ),
      // vllm-project/vllm, docs/getting_started/installation/gpu.apple.inc.md
      serving.setting.cluster.gpu.architecture === 'apple' &&
        "vLLM uses the GPU of Apple's chips only with its plugin vllm-metal, and the processor without it",
    ]),
    without: present([...without, placesNote(serving)]),
  };
}

/** Flags of a program in a note. */
const words = (...flags: readonly (readonly [name: string, value?: string | number])[]): string =>
  flags.map(([name, ...value]) => [asFlag(name), ...value].join(' ')).join(' ');

function sglang(serving: Serving, model: EmittedModel): ServerCommand {
  const { context, tensorParallel, runtime, prefillGpus } = serving.setting;
  const { dataParallelAttention = 1, expertParallel = 1 } = serving.setting;
  const { pipelineParallel = 1, contextParallel = 1 } = serving.setting;
  const { flags, without } = typesOf(serving, 'sglang');
  return {
    program: ['python', '-m', 'sglang.launch_server'],
    flags: [
      ['model-path', model.name],
      // Its tensor parallelism is over all GPUs of a stage, also those with a copy of the attention
      // (sgl-project/sglang, python/sglang/srt/server_args.py).
      ['tp-size', String(tensorParallel * dataParallelAttention)],
      ...(pipelineParallel > 1 ? [['pp-size', String(pipelineParallel)]] : []),
      ...(dataParallelAttention > 1
        ? [['dp-size', String(dataParallelAttention)], ['enable-dp-attention']]
        : []),
      ...(expertParallel > 1 ? [['ep-size', String(expertParallel)]] : []),
      ...(contextParallel > 1 ? [['dcp-size', String(contextParallel)]] : []),
      ['context-length', String(context)],
      // SGLang divides it among the groups, and drops the rest (srt/managers/scheduler.py).
      ...(isCountAsked(serving)
        ? [
            [
              'max-running-requests',
              String(
                dataParallelAttention * Math.ceil(sequencesOf(serving) / dataParallelAttention),
              ),
            ],
          ]
        : []),
      ...shareFlag('mem-fraction-static', memoryShareOf(serving, 'sglang')),
      ...flags,
      // sgl-project/sglang, docs/advanced_features/pd_disaggregation.md
      ...(prefillGpus === undefined ? [] : [['disaggregation-mode', 'decode']]),
    ],
    notes: present([
      model.note,
      ...prefillNotes(
        serving,
        words(['disaggregation-mode', 'prefill']),
        `python -m sglang_router.launch_router with ${words(['pd-disaggregation'], ['prefill', 'URL'], ['decode', 'URL'])}`,
      ),
      ...machineNotes(
        serving,
        ({ count }) =>
          `start it on each, and add ${words(['nnodes', count], ['node-rank', 'RANK'], ['dist-init-addr', 'FIRST_HOST:PORT'])}`,
      ),
    ]),
    without: present([
      ...without,
      placesNote(serving),
      runtime?.launching === 'eager' &&
        runtime.name === 'sglang' &&
        'each kernel launched by itself',
    ]),
  };
}
