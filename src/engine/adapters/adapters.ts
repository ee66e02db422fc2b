/** Graphics adapters of this machine. */
import type { ProblemText } from '../../base/errors.js';
import { releaseOf } from '../package-releases.js';
import { installCommand } from '../select/installation.js';
import type { GraphicsAdapter, SystemCalls, SystemCards } from './graphics-adapter.js';
import { card, cleanName, THIS_MACHINE, vendorIn } from './graphics-adapter.js';
import { linuxCards, macCards, nvidiaCards, windowsCards } from './system-adapters.js';

export type { GraphicsAdapter } from './graphics-adapter.js';

/** Name of a card when its real name is unknown. */
export const UNNAMED_CARD = 'graphics card';

/**
 * The adapter that WebGPU would use: from the package `webgpu`, which also reports limits, else from the operating
 * system. The operating system lists only cards, and the first of several is a guess. Null when there is none. Never
 * throws, and waits at most ten seconds for a driver.
 */
export async function webgpuAdapter(machine = THIS_MACHINE): Promise<GraphicsAdapter | null> {
  const answer = await webgpuOf(machine);
  return answer.kind === 'answer'
    ? answer.adapter
    : ((await systemOf(machine)).forWebgpu[0] ?? null);
}

/** Reason why WebGPU cannot use an existing card; null without a card or a known obstacle. */
export async function webgpuObstacle(machine = THIS_MACHINE): Promise<ProblemText | null> {
  const { cards, forWebgpu, findings } = await systemOf(machine);
  return cards.length > 0 && forWebgpu.length === 0 ? (findings[0] ?? null) : null;
}

/** NVIDIA's cards as its driver lists them: CUDA cannot use others. Never throws. */
export async function cudaAdapters(machine = THIS_MACHINE): Promise<GraphicsAdapter[]> {
  return [...(await nvidiaOf(machine))];
}

/**
 * The adapter that CUDA uses. With several different cards, its name lists all and its memory is the smallest. Null
 * when there is none.
 */
export async function cudaAdapter(machine = THIS_MACHINE): Promise<GraphicsAdapter | null> {
  const cards = await cudaAdapters(machine);
  const [first] = cards;
  if (first === undefined) return null;
  const name = [...new Set(cards.map((each) => each.name))].join(' or ');
  const sizes = cards.flatMap(({ memoryBytes }) => memoryBytes ?? []);
  return { ...first, name, memoryBytes: sizes.length === 0 ? null : Math.min(...sizes) };
}

/** Name of the adapter that CUDA uses. */
export const cudaCard = async (machine = THIS_MACHINE): Promise<string> =>
  (await cudaAdapter(machine))?.name ?? UNNAMED_CARD;

/** Graphics cards as the operating system reports them, without asking WebGPU. Never throws. */
export const systemAdapters = async (machine = THIS_MACHINE): Promise<readonly GraphicsAdapter[]> =>
  (await systemOf(machine)).cards;

export interface AdapterSurvey {
  /** WebGPU's preferred adapter first, where known. */
  readonly adapters: readonly GraphicsAdapter[];
  /** Reasons for missing cards or missing data. */
  readonly findings: readonly ProblemText[];
}

/** All adapters, each once. Never throws. */
export async function surveyAdapters(machine = THIS_MACHINE): Promise<AdapterSurvey> {
  const [webgpu, system] = await Promise.all([webgpuOf(machine), systemOf(machine)]);
  const taken = webgpu.kind === 'answer' ? webgpu.adapter : null;
  const same = taken && sameCard(taken, system.cards);
  const others = system.cards.filter((each) => each !== same);
  return {
    adapters: taken ? [taken, ...others] : others,
    findings: [...system.findings, ...aboutWebgpu(webgpu)],
  };
}

/** Caches the answer for each machine: its cards do not change while the process runs. */
function once<T>(ask: (machine: SystemCalls) => Promise<T>): (machine: SystemCalls) => Promise<T> {
  const answers = new WeakMap<SystemCalls, Promise<T>>();
  return (machine) => {
    const answer = answers.get(machine) ?? ask(machine);
    answers.set(machine, answer);
    return answer;
  };
}

const nvidiaOf = once(nvidiaCards);
const systemOf = once(async (machine) => systemCards(machine, await nvidiaOf(machine)));
const webgpuOf = once(async (machine) => {
  const answer = await askWebgpu(machine);
  return answer.kind === 'answer' && answer.adapter !== null && !answer.adapter.isSoftware
    ? { ...answer, adapter: withMemory(answer.adapter, (await systemOf(machine)).cards) }
    : answer;
});

async function systemCards(
  machine: SystemCalls,
  nvidia: readonly GraphicsAdapter[],
): Promise<SystemCards> {
  switch (machine.platform) {
    case 'darwin':
      return macCards(machine);
    case 'win32':
      return windowsCards(machine, nvidia);
    default:
      return linuxCards(machine, nvidia);
  }
}

/** Adds the memory, which the package does not report but the system may. */
function withMemory(adapter: GraphicsAdapter, cards: readonly GraphicsAdapter[]): GraphicsAdapter {
  const { memoryBytes = null, source = '' } = sameCard(adapter, cards) ?? {};
  return memoryBytes === null
    ? adapter
    : { ...adapter, memoryBytes, source: `${adapter.source}, ${source}` };
}

/** The card whose name is part of the adapter's name, else the only candidate, because names differ between sources. */
function sameCard(
  adapter: GraphicsAdapter,
  cards: readonly GraphicsAdapter[],
): GraphicsAdapter | undefined {
  if (adapter.isSoftware) return undefined;
  const [only, ...others] = cards.filter(
    ({ vendor }) => vendor === null || vendor === adapter.vendor,
  );
  return (
    cards.find(({ name }) => adapter.name.includes(name)) ??
    (others.length === 0 ? only : undefined)
  );
}

function aboutWebgpu(answer: WebgpuAnswer): ProblemText[] {
  switch (answer.kind) {
    case 'missing':
      return [
        {
          message: `only the package ${WEBGPU_PACKAGE} knows of limits, float16 and software adapters`,
          suggestion: WEBGPU_COMMAND,
        },
      ];
    case 'silent':
      return [
        {
          message: `the package ${WEBGPU_PACKAGE} is installed but gives no answer`,
          suggestion: WEBGPU_COMMAND,
        },
      ];
    case 'answer':
      return answer.adapter === null
        ? [{ message: `the package ${WEBGPU_PACKAGE} finds no adapter` }]
        : [];
  }
}

// The adapter that WebGPU uses, as reported by the package `webgpu`: ONNX Runtime includes the same library.

const WEBGPU_PACKAGE = 'webgpu';

/** Command that installs the tested version. */
export const WEBGPU_COMMAND = installCommand(releaseOf(WEBGPU_PACKAGE));

/** Answer of the package: not installed, no usable answer, or the adapter. */
export type WebgpuAnswer =
  | { readonly kind: 'missing' }
  | { readonly kind: 'silent' }
  | { readonly kind: 'answer'; readonly adapter: GraphicsAdapter | null };

/**
 * Runs in its own process: the library writes to standard error and loads drivers, which may crash or hang.
 * `info.device` is the adapter's name in lowercase with dashes. The real name appears in the error about a requested
 * adapter that does not exist.
 */
const PROBE = `
import { writeSync } from 'node:fs';

const { create } = await import(process.argv[1]);
const gpu = create([]);
const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
let listed = '';
try {
  await create(['adapter=\\u0001']).requestAdapter();
} catch (error) {
  listed = String(error.message);
}
const { vendor, device, description, isFallbackAdapter } = adapter?.info ?? {};
const { maxBufferSize, maxStorageBufferBindingSize } = adapter?.limits ?? {};
const hasFloat16 = adapter?.features.has('shader-f16');
writeSync(1, JSON.stringify({
  adapter: adapter && {
    vendor, device, description, isFallbackAdapter, maxBufferSize, maxStorageBufferBindingSize, hasFloat16,
  },
  listed,
}) + '\\n');
process.exit(0);
`;

/** Runs the probe in its own process. Never throws. */
async function askWebgpu(machine: SystemCalls): Promise<WebgpuAnswer> {
  const url = machine.locate(WEBGPU_PACKAGE);
  if (url === null) return { kind: 'missing' };
  const words = ['--input-type=module', '--eval', PROBE, url];
  return read(await machine.ask(process.execPath, words));
}

/** Output of a successful probe. */
interface ProbeOutput {
  readonly adapter: Readonly<Record<string, unknown>> | null;
  readonly listed: unknown;
}

/** Parses the probe's output, around which drivers may have printed their own. */
function read(answer: string): WebgpuAnswer {
  const line = answer.split('\n').find((each) => each.startsWith('{"adapter":'));
  try {
    // Only `PROBE` prints a line with this beginning.
    const { adapter, listed } = JSON.parse(line ?? '') as ProbeOutput;
    if (adapter === null) return { kind: 'answer', adapter: null };
    const found = adapterOf(adapter, String(listed));
    return found === null ? { kind: 'silent' } : { kind: 'answer', adapter: found };
  } catch {
    return { kind: 'silent' };
  }
}

/** Libraries that compute on the processor, in case one does not report it. */
const SOFTWARE = /llvmpipe|lavapipe|swiftshader|basic render|\bwarp\b/i;

function adapterOf(
  info: Readonly<Record<string, unknown>>,
  listed: string,
): GraphicsAdapter | null {
  const device = cleanName(info.device);
  const name = listedAs(device, listed) ?? device ?? cleanName(info.description);
  if (name === null || typeof info.isFallbackAdapter !== 'boolean') return null;
  const vendor = cleanName(info.vendor);
  return card({
    name,
    vendor: vendorIn(vendor ?? '') ?? vendor,
    isSoftware: info.isFallbackAdapter || SOFTWARE.test(name),
    maxBufferBytes: byteCount(info.maxBufferSize),
    maxBindingBytes: byteCount(info.maxStorageBufferBindingSize),
    hasFloat16: typeof info.hasFloat16 === 'boolean' ? info.hasFloat16 : null,
    source: WEBGPU_PACKAGE,
  });
}

/** The real name of an adapter whose identifier is known, in ` * backend: 'vulkan', name: 'NVIDIA H200'`. */
function listedAs(device: string | null, listed: string): string | null {
  if (device === null) return null;
  const names = [...listed.matchAll(/^ \* backend: '.*?', name: '(.*)'$/gm)].map(
    ([, name]) => name,
  );
  return cleanName(names.find((name) => name !== undefined && idOf(name) === idOf(device)));
}

const idOf = (name: string) =>
  name
    .toLowerCase()
    .match(/[a-z\d]+/g)
    ?.join('-') ?? '';

/** A limit as a number; null when it is beyond the exact integers. */
const byteCount = (value: unknown): number | null =>
  typeof value === 'number' && value >= 1
    ? Math.min(Math.floor(value), Number.MAX_SAFE_INTEGER)
    : null;
