/** Loads the optional package onnxruntime-node when it is first needed. */
import { createRequire } from 'node:module';
import type * as Ort from 'onnxruntime-node';
import { UserError } from '../../base/errors.js';
import { shellWord } from '../../base/text/shell-words.js';
import { releaseOf } from '../package-releases.js';
import { installCommand } from '../select/installation.js';

export type Library = Pick<typeof Ort, 'InferenceSession' | 'Tensor' | 'env'>;
export type Session = Ort.InferenceSession;
export type SessionOptions = Ort.InferenceSession.SessionOptions;
export type OrtTensor = Ort.Tensor;

/** Returns a module by its name, like `require`. */
export type Require = (name: string) => unknown;

const PACKAGE = 'onnxruntime-node';

/**
 * Command that installs the tested version. The package's own install script would download files that only CUDA needs,
 * and fail without a network.
 */
export const INSTALL_COMMAND = installCommand(`--ignore-scripts ${releaseOf(PACKAGE)}`);

/**
 * Command that downloads CUDA's part of the installed library, for Linux on x86-64. It runs the library's own install
 * script: `npm rebuild` skips it, and reports success, where package.json does not allow it.
 */
export const CUDA_COMMAND = `node ${shellWord(installScript())} --${PACKAGE}-install=cuda12`;

/** @throws UserError when the library is not installed, or does not load on this machine. */
export function loadLibrary(require: Require = createRequire(import.meta.url)): Library {
  // Disables telemetry, which also leaves files in the temporary folder.
  process.env.ORT_DISABLE_TELEMETRY ??= '1';
  try {
    const library = require(PACKAGE) as Library;
    // Errors are thrown, and standard error is for messages of this program.
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
  if (onnxVersion(require) === undefined) return 'it is not installed';
  const reason = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
  return `it does not load: ${reason}`;
}

/** Version of the installed library, without loading it; undefined when it is not installed. */
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
