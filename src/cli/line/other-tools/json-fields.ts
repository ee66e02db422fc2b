/** Names of fields after `--json`. */
import fs from 'node:fs';
import { isPreset } from '../../foreign/meanings.js';
import { MODEL_ARGUMENTS, type TypedLine } from '../typed-line.js';

/** Names of fields, as in `parameters.total,file`. No file has these endings in place of a field. */
const FIELDS = /^[a-z]\w*(?:\.[a-z]\w*)*(?:,[a-z]\w*(?:\.[a-z]\w*)*)*$/i;
const FILE = /\.(?:ya?ml|json|jsonl|txt|md|pt|pth|bin|gguf|onnx|safetensors|toml|sh|py)$/i;

/**
 * Whether the word after `--json` names fields, as with `gh`: it is neither a file nor a model, and the command takes no
 * further argument, or the word has the form of a field in the place of a model.
 */
export function areFields(typed: TypedLine, at: number): boolean {
  const word = typed.words[at] ?? '';
  const { args, flags, strict } = typed.command;
  if (!FIELDS.test(word) || FILE.test(word) || !Object.hasOwn(flags, 'fields')) return false;
  if (typed.given.has('fields') || fs.existsSync(word)) return false;
  const others = typed.arguments.length + argumentsFrom(typed, at + 1);
  const names = Object.keys(args);
  const isMore = strict === false ? others > 0 : others >= names.length;
  const isOfModel = /[.,]/.test(word) && MODEL_ARGUMENTS.has(names[others] ?? '');
  return (isMore || isOfModel) && !isPreset(word);
}

/** Number of arguments from a position on, which is not read yet. */
function argumentsFrom(typed: TypedLine, from: number): number {
  return typed.words.slice(from).filter((word, index) => {
    const [, before] = /^--([\w-]+)$/.exec(typed.words[from + index - 1] ?? '') ?? [];
    const isValue = before !== undefined && typed.command.flags[before]?.type === 'option';
    return !word.startsWith('-') && !isValue;
  }).length;
}
