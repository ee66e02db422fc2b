/** Endings of the names of files that commands write. */
import fs from 'node:fs';
import path from 'node:path';
import { usageError } from '../errors.js';

/** Ending of a name in lower case, as `.onnx`; empty without one. That of `model-0.5b` is part of the name. */
export function endingOf(file: string): string {
  const ending = path.extname(file).toLowerCase();
  return /^\.(?:[a-z]\w*|7z)$/.test(ending) ? ending : '';
}

/** Endings of files of models. */
const MODEL_ENDING = /^\.(?:ya?ml|json|safetensors|pt|pth|bin|ckpt|gguf|onnx)$/;

/**
 * `refuseOtherEnding` before the inputs are open. An existing file of a model is left to the check of inputs, which
 * reports more, and to a second check when the file is written.
 */
export function refuseOtherEndingEarly(
  place: string,
  file: string,
  endings: readonly string[],
): void {
  if (MODEL_ENDING.test(endingOf(file)) && fs.existsSync(file)) return;
  refuseOtherEnding(place, file, endings);
}

/**
 * Refuses a name with the ending of another kind of file. A name without an ending is allowed.
 * @param place Where the name was written: `--save`, `OUT`.
 * @param endings Those of the file, the usual one first.
 */
export function refuseOtherEnding(place: string, file: string, endings: readonly string[]): void {
  const ending = endingOf(file);
  if (ending === '' || endings.includes(ending)) return;
  const flag = place.startsWith('--') ? `${place} ` : '';
  const expected = [...new Set(endings)].join(', ').replace(/, (?=[^,]*$)/, ' or ');
  throw usageError(
    `${place}: expected a ${expected} file, found ${file}`,
    `write ${flag}${file.slice(0, -ending.length)}${endings[0] ?? ''}`,
  );
}
