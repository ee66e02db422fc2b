/** The recorded packages with native code: `fixtures/tfjs-node/record.js`. */
import { readJson } from '../../fixtures.js';

export type NativePackage = '@tensorflow/tfjs-node' | '@tensorflow/tfjs-node-gpu';

interface Surface {
  readonly version: string;
  readonly library: Readonly<Record<string, string>>;
  readonly typings: readonly string[];
  /** Name of its backend in the library. */
  readonly backend: string;
  readonly backendTypings: readonly string[];
  /** Functions of `node:util` that it calls. */
  readonly functionsOfUtil: readonly string[];
  readonly functions: readonly string[];
}

export const SURFACE: Readonly<Record<NativePackage, Surface>> = readJson(
  'fixtures/tfjs-node/surface.json',
);
