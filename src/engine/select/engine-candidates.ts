/** Candidates for running a model: each engine with each of its backends. */

import { createRequire } from 'node:module';
import type { ProblemText } from '../../base/errors.js';
import type { Platform } from '../../base/platform.js';
import type { GraphicsAdapter } from '../adapters/adapters.js';
import { cudaAdapter, webgpuAdapter, webgpuObstacle } from '../adapters/adapters.js';
import type { Compute, DeviceName, Engine, EngineName } from '../engine.js';
import type { Provider } from '../onnx/onnx-engine.js';
import type { EnginePackage } from '../package-releases.js';
import { RELEASES } from '../package-releases.js';
import type { BackendName } from '../tfjs/backends.js';

/** Options for opening an engine. */
export interface EngineOptions {
  /** Threads of one run, at most, where the library supports the choice. */
  readonly threads: number;
  readonly compute: Compute;
  /** Whether a graphics adapter that computes on the processor is allowed. */
  readonly acceptsSoftware?: boolean;
}

/** An engine with one of its backends. */
export interface EngineCandidate {
  /** `onnx:cpu`, `tfjs:wasm`, … */
  readonly name: `${EngineName}:${string}`;
  readonly engine: EngineName;
  /** Name in the library. */
  readonly backend: string;
  readonly device: DeviceName;
  readonly package: string;
  /** Release of a package that is part of every installation. */
  readonly bundledRelease?: string;
  /** Platforms that support it; all when absent. */
  readonly platforms?: readonly Platform[];
  /** Number types of its products; any when absent. */
  readonly computes?: readonly Compute[];
  /** Whether it is an optional installation: its absence is not reported. */
  readonly isOptional: boolean;
  /** Whether it can be selected automatically. */
  readonly isAutomatic: boolean;
  /** The graphics card that it would use; null when there is none. Absent for engines on the processor. */
  readonly adapter?: () => Promise<GraphicsAdapter | null>;
  /** Reason why it cannot use an existing card; null when there is none. */
  readonly obstacle?: () => Promise<ProblemText | null>;
  /** @throws UserError when it cannot be used here. */
  readonly open: (options: EngineOptions) => Promise<Engine>;
}

interface Traits {
  readonly device?: DeviceName;
  readonly platforms?: readonly Platform[];
  readonly isOptional?: boolean;
  readonly isAutomatic?: boolean;
}

const onnx = <const Name extends Provider>(provider: Name, traits: Traits = {}) => ({
  ...candidate(`onnx:${provider}`, traits),
  engine: 'onnx' as const,
  backend: provider,
  package: 'onnxruntime-node',
  open: async (options: EngineOptions) =>
    (await import('../onnx/onnx-engine.js')).openOnnx({ ...options, provider }),
});

const tfjs = <const Name extends BackendName>(
  backend: Name,
  packageName: EnginePackage,
  traits: Traits = {},
) => ({
  ...candidate(`tfjs:${backend}`, traits),
  engine: 'tfjs' as const,
  computes: ['f32'] as readonly Compute[],
  backend,
  package: packageName,
  open: async (options: EngineOptions) =>
    (await import('../tfjs/tfjs-engine.js')).openTfjs({ ...options, backend }),
});

const bundled = <const Name extends BackendName>(backend: Name, packageName: EnginePackage) => ({
  ...tfjs(backend, packageName),
  bundledRelease: RELEASES[packageName],
});

const WEBGPU = { adapter: webgpuAdapter, obstacle: webgpuObstacle };

const ADAPTERS = {
  cpu: {},
  cuda: { adapter: cudaAdapter },
  webgpu: WEBGPU,
  directml: WEBGPU,
  coreml: WEBGPU,
} as const satisfies Record<DeviceName, Pick<EngineCandidate, 'adapter' | 'obstacle'>>;

const candidate = <const Name extends string>(
  name: Name,
  { device = 'cpu', platforms, isOptional = false, isAutomatic = true }: Traits,
): Pick<
  EngineCandidate,
  'device' | 'isOptional' | 'isAutomatic' | 'platforms' | 'adapter' | 'obstacle'
> & {
  readonly name: Name;
} => ({
  name,
  device,
  isOptional,
  isAutomatic,
  ...(platforms && { platforms }),
  ...ADAPTERS[device],
});

/** The fastest engine first, each with its fastest backend first. */
export const CANDIDATES = [
  onnx('cuda', { device: 'cuda', platforms: ['linux', 'win32'] }),
  onnx('webgpu', { device: 'webgpu' }),
  onnx('dml', { device: 'directml', platforms: ['win32'] }),
  // It may compute in float16 by itself, so it is used only on request.
  onnx('coreml', { device: 'coreml', platforms: ['darwin'], isAutomatic: false }),
  onnx('cpu'),
  tfjs('node-gpu', '@tensorflow/tfjs-node-gpu', {
    device: 'cuda',
    platforms: ['linux', 'win32'],
    isOptional: true,
  }),
  tfjs('node', '@tensorflow/tfjs-node', { isOptional: true }),
  bundled('wasm', '@tensorflow/tfjs-backend-wasm'),
  bundled('cpu', '@tensorflow/tfjs-backend-cpu'),
] as const satisfies readonly EngineCandidate[];

export type CandidateName = (typeof CANDIDATES)[number]['name'];

/** Version of a candidate's package, without loading it; null when it is not installed. */
export function installedVersion({
  package: name,
  bundledRelease,
}: Pick<EngineCandidate, 'package' | 'bundledRelease'>): string | null {
  if (bundledRelease !== undefined) return bundledRelease;
  try {
    const manifest: unknown = createRequire(import.meta.url)(`${name}/package.json`);
    return (manifest as { readonly version: string }).version;
  } catch {
    return null;
  }
}
