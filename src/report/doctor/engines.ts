/** Engines in words. */
import type { PassedOver } from '../../runtime/devices.js';
import type { ENGINES, EngineInfo } from '../../runtime/engine.js';
import type { SelfCheck } from '../../runtime/self-check.js';

/** As `src/runtime/engine.ts` has them, of which a report takes the types alone. */
export const ENGINE_TITLES: typeof ENGINES = {
  onnx: 'ONNX Runtime',
  tfjs: 'TensorFlow.js',
};

/** `ONNX Runtime 1.30.0 (cpu), 2 threads; self-check within 2.1e-8`. */
export function engineText(info: EngineInfo, { difference }: SelfCheck): string {
  const { name, version, provider, device, threads, compute } = info;
  const where = provider === device ? provider : `${provider} on ${device}`;
  const many = `${threads} thread${threads === 1 ? '' : 's'}`;
  const products = compute === 'f16' ? ', products in float16' : '';
  return `${ENGINE_TITLES[name]} ${version} (${where}), ${many}${products}; self-check within ${difference.toExponential(1)}`;
}

/** `Not TensorFlow.js (node): it is not installed. To mend it: npm install …`. */
export const passedOverText = ({ engine, backend, why, suggestion }: PassedOver): string =>
  `Not ${ENGINE_TITLES[engine]} (${backend}): ${why}.${suggestion ? ` To mend it: ${suggestion}` : ''}`;
