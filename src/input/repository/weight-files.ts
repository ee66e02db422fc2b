/** Choice of the weights in a folder that holds several copies of them. */
import { hasWeightsExtension, isIndexName, isWeightsName } from '../../checkpoint/formats.js';

/** Files of one copy of the weights. */
export interface WeightFiles {
  /** Name without variant, shard and ending: `model`, `diffusion_pytorch_model`. */
  readonly stem: string;
  /** `fp16`, `Q4_K_M`; empty for the weights themselves. */
  readonly variant: string;
  /** Ending of the names: `safetensors`. */
  readonly ending: string;
  /** Names of its files, its index of shards included. */
  readonly names: readonly string[];
}

/** The weights of a folder, and further copies of them in other types or formats. */
export interface ChosenWeights {
  /** One set, or, where no name marks the weights of a model, each file of its own. */
  readonly chosen: readonly WeightFiles[];
  readonly copies: readonly WeightFiles[];
}

/**
 * Names of weights of a model, the preferred one first. transformers/utils/__init__.py: SAFE_WEIGHTS_NAME, WEIGHTS_NAME;
 * diffusers/utils/constants.py: SAFETENSORS_WEIGHTS_NAME; peft/utils/constants.py; Mistral's releases.
 */
const STEMS = [
  'model',
  'diffusion_pytorch_model',
  'pytorch_model',
  'adapter_model',
  'pytorch_lora_weights',
  'consolidated',
] as const;

/** Endings of the same weights, the preferred one first. */
const ENDINGS = ['safetensors', 'bin', 'pt', 'pth', 'ckpt', 'gguf'] as const;

/** Types of weights in the names of GGUF files; the one that llama.cpp loads without a choice. */
const GGUF_TYPE = /^(.*?)[-.]((?:UD-)?I?Q\d\w*|[BF]F?\d{2}|MXFP4\w*)$/i;
const USUAL_GGUF = 'q4_k_m';

/** Variants of diffusers and transformers (`variant="fp16"`). */
const VARIANT = /^(.*)\.((?:fp|bf|int|float|bfloat)\d+\w*|f16|f32|(?:non_)?ema|\d+bit)$/i;

const SHARD = /-\d{5}-of-\d{5}$/;
const OLD_SHARD = /\.\d{2}$/;

/** @param names Names of the files of a folder. */
export function chosenWeights(names: readonly string[]): ChosenWeights {
  const sets = [...setsOf(names)].sort(byPreference);
  const marked = sets.find(({ stem }) => isMarked(stem));
  const [first] = sets;
  if (first === undefined) return { chosen: [], copies: [] };
  if (marked) return { chosen: [marked], copies: sets.filter((set) => set !== marked) };
  if (sets.every(({ ending, stem }) => ending === 'gguf' && stem === first.stem)) {
    return { chosen: [first], copies: sets.slice(1) };
  }
  const stems = new Set<string>();
  const chosen = sets.filter(({ stem }) => !stems.has(stem) && stems.add(stem));
  return { chosen, copies: sets.filter((set) => !chosen.includes(set)) };
}

const isMarked = (stem: string) => (STEMS as readonly string[]).includes(stem);

function setsOf(names: readonly string[]): Iterable<WeightFiles> {
  const sets = new Map<string, WeightFiles & { names: string[] }>();
  for (const name of names) {
    if (name.startsWith('.') || !(isIndexName(name) || isVariantIndex(name) || isOfModel(name)))
      continue;
    const { stem, variant, ending } = fileNameParts(name);
    const key = JSON.stringify([stem, variant, ending]);
    const found = sets.get(key);
    if (found) found.names.push(name);
    else sets.set(key, { stem, variant, ending, names: [name] });
  }
  return sets.values();
}

/** `model.safetensors.index.fp16.json` */
const isVariantIndex = (name: string) => /\.(?:safetensors|bin)\.index\.\w+\.json$/.test(name);

const isOfModel = (name: string) => hasWeightsExtension(name) && isWeightsName(name);

function fileNameParts(name: string): Omit<WeightFiles, 'names'> {
  const [, ofIndex = name, indexVariant = ''] = /^(.*)\.index(?:\.(\w+))?\.json$/.exec(name) ?? [];
  const dot = ofIndex.lastIndexOf('.');
  const ending = ofIndex.slice(dot + 1).toLowerCase();
  const whole = ofIndex.slice(0, dot).replace(SHARD, '');
  const base = whole.startsWith('consolidated') ? whole.replace(OLD_SHARD, '') : whole;
  const pattern = ending === 'gguf' ? GGUF_TYPE : VARIANT;
  const [, stem = base, variant = ''] = pattern.exec(base) ?? [];
  return { stem: stem.replace(SHARD, ''), variant: variant || indexVariant, ending };
}

function byPreference(a: WeightFiles, b: WeightFiles): number {
  return (
    rankIn(STEMS, a.stem) - rankIn(STEMS, b.stem) ||
    variantRank(a) - variantRank(b) ||
    rankIn(ENDINGS, a.ending) - rankIn(ENDINGS, b.ending) ||
    compareText(a.stem, b.stem) ||
    compareText(a.variant, b.variant)
  );
}

const rankIn = (all: readonly string[], value: string): number => {
  const at = all.indexOf(value);
  return at < 0 ? all.length : at;
};

const variantRank = ({ variant, ending }: WeightFiles): number =>
  variant === '' || (ending === 'gguf' && variant.toLowerCase() === USUAL_GGUF) ? 0 : 1;

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
