/** Names of models in paths that are not here: those of another machine, or of a file that is not yet downloaded. */
import fs from 'node:fs';
import { downloadLine, isHubName } from '../../../base/text/hub-names.js';
import {
  type QuantizedName,
  quantizedName,
  usualType,
} from '../../../input/published/quantized-names.js';
import { LineMistake, type MeantLine } from '../line-mistake.js';
import { missingText } from '../missing-file.js';

/** A type of llama.cpp at the end of a file's name, and the number of a part. */
const TYPED = /^(.+?)[-._]((?:iq|q)\d\w*|tq[12]_0|mxfp4|bf16|f16|f32)(?:-\d{5}-of-\d{5})?$/i;

interface NameInPath {
  readonly model: string;
  /** Type of the weights in the file's name. */
  readonly dtype: string | undefined;
}

/**
 * Names that a path can end with, the longest first: `/data/Qwen/Qwen3-8B` with its organization and without it,
 * `Qwen3-8B-Q4_K_M.gguf` and `Qwen3-8B-AWQ` without their types. None for a path that exists, and for a plain name.
 */
export function namesInPath(written: string): readonly NameInPath[] {
  // A type as Ollama and llama.cpp write it: `hf.co/ORG/NAME:Q4_K_M`.
  const { text, type } = withoutTag(written);
  const parts = text
    .replaceAll('\\', '/')
    .split('/')
    .filter((part) => !/^\.{0,2}$/.test(part));
  const [folder, last = ''] = parts.length > 1 ? parts.slice(-2) : [undefined, parts[0]];
  const isFile = /\.gguf$/i.test(last);
  const stem = last.replace(/\.gguf$/i, '');
  const quantized = isFile ? undefined : quantizedName(stem);
  const isPath = isFile || folder !== undefined || /^[./~\\]|[/\\]$/.test(text);
  const isNamed = isPath || quantized !== undefined;
  if (text.startsWith('hf:') || !isNamed || fs.existsSync(text)) return [];
  const [, typed = stem, ofFile] = (isFile ? TYPED.exec(stem) : null) ?? [];
  const { name, dtype } =
    quantized === undefined ? { name: typed, dtype: type ?? ofFile } : typedName(quantized, type);
  // A repository of the same organization has the model itself.
  const isOrganized = folder !== undefined && (parts.length > 2 || quantized !== undefined);
  const organized = isOrganized ? [`${folder}/${name}`] : [];
  // A folder of text-generation-webui has the organization before the name: TheBloke_Llama-2-7B-GPTQ.
  const [, own] = folder === undefined ? (/^[a-z][\w-]*?_(?=[a-z])(.+)$/i.exec(name) ?? []) : [];
  return [...organized, name, ...(own === undefined ? [] : [own])].flatMap((model) => {
    // Unsloth's mixtures by layer have names of their own.
    const plain = model.replace(/-UD$/i, '');
    const names = plain === model ? [model] : [plain, plain.replace(/-MTP$/i, '')];
    return names.map((each) => ({ model: each, dtype: dtype?.toLowerCase() }));
  });
}

/** A name with the type of its weights; of a repository of GGUF files, that of its usual one. */
const typedName = ({ name, dtype }: QuantizedName, tag: string | undefined): QuantizedName => ({
  name,
  dtype: tag ?? dtype ?? usualType(name),
});

/** A repository before a type, and the type without the sign of the mixtures of Unsloth. */
const TAGGED =
  /^([^:]*(?::\/\/[^:]*)?\/[^:/]+):(?:UD-)?((?:i?q)\d\w*|tq[12]_0|mxfp4|bf16|f16|f32)$/i;

/** A name without the type after its colon, and the type. */
export function withoutTag(text: string): { readonly text: string; readonly type?: string } {
  const [, repository, type] = TAGGED.exec(text) ?? [];
  return repository === undefined || type === undefined ? { text } : { text: repository, type };
}

/** Properties of a command that decide how it takes a model. */
export interface Takes {
  /** The flag for a type of weights that can be added. */
  readonly type: 'dtype' | 'base-dtype' | undefined;
  /** Whether the line has a type of its own, which the name repeats. */
  readonly isTyped?: boolean;
  /** Whether models of the hub are read. */
  readonly hub: boolean;
}

/** The flag of a command for the type of weights that a line does not have: under adapters, that of the frozen ones. */
export function typeFlag(
  { flags }: { readonly flags: Readonly<Record<string, unknown>> },
  words: readonly string[],
): Takes['type'] {
  const isOfAdapters = /(?:^| )--for[ =]q?lora(?: |$)/.test(words.join(' '));
  const flag = isOfAdapters && Object.hasOwn(flags, 'base-dtype') ? 'base-dtype' : 'dtype';
  const isGiven = words.some((word) => word.split('=', 1)[0] === `--${flag}`);
  return Object.hasOwn(flags, flag) && !isGiven ? flag : undefined;
}

/** Whether a type is a mixture of another program, with larger embeddings: `q4_k_xl`, `q6_k_l`. */
export const isOtherMixture = (dtype: string): boolean =>
  /^q\d_k_x*l$/.test(dtype) && dtype !== 'q3_k_l';

/** The type of llama.cpp that is nearest to a mixture of another program, or to its bits alone: q4_k_xl, q4. */
export const nearType = (dtype: string): string =>
  dtype
    .replace(/^q8(?:_k_x*l)?$/i, 'q8_0')
    .replace(/^q([2-6])(_k_x*l)?$/i, (_, bits, isLarge) =>
      bits === '2' || bits === '6'
        ? `q${bits}_k`
        : `q${bits}_k_${bits === '3' && isLarge ? 'l' : 'm'}`,
    );

/** Types of a training, and of models that have no other. */
const OF_16_BITS = /^b?f16$/;

/** The mistake of a line whose model is not there. */
export function missingModel(
  word: string,
  lines: readonly MeantLine[],
  { hub }: Pick<Takes, 'hub'>,
): LineMistake {
  const isOfHub = isHubName(word) && !hub;
  return new LineMistake(missingText(word), lines, {
    otherwise: isOfHub
      ? `write ${downloadLine(word)}, then name the folder`
      : `name a file${hub ? ', hf:ORG/NAME' : ''}, or a preset of minimind list`,
    isCause: true,
  });
}

/** A line with one model. */
type LineOfModel = MeantLine & { readonly models: readonly [model: string] };

/**
 * Lines with another model in the place of a word that is none here: the one that a path is named after, or one of the
 * hub. Whether it is a model is checked later.
 */
export function linesWithOther(words: readonly string[], at: number, takes: Takes): LineOfModel[] {
  const word = words[at] ?? '';
  const named = namesInPath(word).flatMap(({ model, dtype }): LineOfModel[] => {
    // Without its type, the line would answer for other weights.
    const isNeeded = dtype !== undefined && !(takes.type === undefined && OF_16_BITS.test(dtype));
    if (isNeeded && takes.type === undefined && !takes.isTyped) return [];
    const near = isNeeded && takes.type !== undefined ? nearType(dtype) : undefined;
    return [
      {
        words: words.toSpliced(at, 1, model, ...(near ? [`--${takes.type}`, near] : [])),
        models: [model],
        leftOut: [
          missingText(word),
          ...(near === undefined || near === dtype ? [] : [`${dtype} is counted as ${near}`]),
        ],
      },
    ];
  });
  const isOfHub = takes.hub && isHubName(word) && !fs.existsSync(word);
  const reference = `hf:${word}`;
  return isOfHub ? [...named, { words: words.with(at, reference), models: [reference] }] : named;
}
