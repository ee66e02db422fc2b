/** onnxruntime-node, which may be missing: it is loaded when it is needed, and not before. */
import { createRequire } from 'node:module';
import type * as Ort from 'onnxruntime-node';
import { UserError } from '../../errors.js';
import { installCommand, shellWord } from '../select/installation.js';

export type Library = Pick<typeof Ort, 'InferenceSession' | 'Tensor' | 'env'>;
export type Session = Ort.InferenceSession;
export type SessionOptions = Ort.InferenceSession.SessionOptions;
export type Tensor = Ort.Tensor;

/** Gives a module by its name, as `require` does. */
export type Require = (name: string) => unknown;

const PACKAGE = 'onnxruntime-node';

/**
 * Installs the library, in the version that this engine was tested with. Its own install script would
 * fetch what only CUDA needs, and fail without a network.
 */
export const INSTALL_COMMAND = installCommand(`--ignore-scripts ${PACKAGE}@1.30.0`);

/**
 * Fetches CUDA's part of the installed library; there is one for Linux on x86-64. It runs the library's own
 * install script: `npm rebuild` skips that, and reports success, where package.json does not allow it.
 */
export const CUDA_COMMAND = `node ${shellWord(installScript())} --${PACKAGE}-install=cuda12`;

/** @throws UserError when the library is not installed, or does not load on this machine. */
export function loadLibrary(require: Require = createRequire(import.meta.url)): Library {
  // Otherwise it reports what it runs to its makers, and leaves files in the folder for temporary ones.
  process.env.ORT_DISABLE_TELEMETRY ??= '1';
  try {
    const library = require(PACKAGE) as Library;
    // What goes wrong is thrown; standard error is for what we say.
    library.env.logLevel = 'fatal';
    return library;
  } catch (error) {
    throw new UserError('system', whyNot(error, require), {
      suggestion: INSTALL_COMMAND,
      cause: error,
    });
  }
}

function whyNot(error: unknown, require: Require): string {
  if (onnxVersion(require) === undefined) {
    return `ONNX Runtime is not installed: there is no package ${PACKAGE}`;
  }
  const reason = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
  return `ONNX Runtime does not load: ${reason}`;
}

/** Version of the library that is installed; undefined when none is. Does not load it. */
export function onnxVersion(require: Require = createRequire(import.meta.url)): string | undefined {
  try {
    const { version } = require(`${PACKAGE}/package.json`) as { readonly version: string };
    return version;
  } catch {
    return undefined;
  }
}

function installScript(): string {
  const script = `${PACKAGE}/script/install.js`;
  try {
    return createRequire(import.meta.url).resolve(script);
  } catch {
    return `node_modules/${script}`;
  }
}
