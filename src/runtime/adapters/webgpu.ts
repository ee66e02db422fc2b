/** The adapter that WebGPU uses, from the package `webgpu`: ONNX Runtime includes the same library. */
import { installCommand } from '../select/installation.js';
import type { GraphicsAdapter, SystemCalls } from './graphics-adapter.js';
import { card, cleanName, vendorIn } from './graphics-adapter.js';

export const WEBGPU_PACKAGE = 'webgpu';

/** Command that installs the tested version. */
export const WEBGPU_COMMAND = installCommand(`${WEBGPU_PACKAGE}@0.6.2`);

/** Answer of the package: whether it is installed, whether it answered, and the adapter. */
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

/** Never throws. */
export async function askWebgpu(machine: SystemCalls): Promise<WebgpuAnswer> {
  const url = machine.locate(WEBGPU_PACKAGE);
  if (url === null) return { kind: 'missing' };
  const words = ['--input-type=module', '--eval', PROBE, url];
  return read(await machine.ask(process.execPath, words));
}

/** Output of a successful probe. */
interface Told {
  readonly adapter: Readonly<Record<string, unknown>> | null;
  readonly listed: unknown;
}

/** Drivers may have printed around it. */
function read(answer: string): WebgpuAnswer {
  const line = answer.split('\n').find((each) => each.startsWith('{"adapter":'));
  try {
    const { adapter, listed } = JSON.parse(line ?? '') as Told;
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
    maxBufferBytes: bytesOf(info.maxBufferSize),
    maxBindingBytes: bytesOf(info.maxStorageBufferBindingSize),
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

/** A limit beyond the exact integers is not reported. */
const bytesOf = (value: unknown): number | null =>
  typeof value === 'number' && value >= 1
    ? Math.min(Math.floor(value), Number.MAX_SAFE_INTEGER)
    : null;
