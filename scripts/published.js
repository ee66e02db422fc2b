// Rebuilds the sizes in configs/published.yaml from config.json files:
//   npm run published             reads them from the Hugging Face hub
//   npm run published -- FOLDER   reads FOLDER/ORG/NAME/config.json, and keeps the sizes of models that it does not have
//   npm run published -- FOLDER --check   compares only
// Names, figures, sources and the order stay as they are. Settings with the default of the family are left out.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { parseDocument } from '../src/config/document.js';
import { asOurDocument } from '../src/input/model-input/hugging-face/hugging-face-document.js';
import { hubOf, publishedSettings } from '../src/input/published/published-file.js';
import { loadFamily } from '../src/model/architecture/families.js';
import { presetDocument } from '../src/model/architecture/presets.js';

const FILE = fileURLToPath(new URL('../configs/published.yaml', import.meta.url));

/** Parts of a quantization section that say how many bits a weight has. */
const STORED = [
  ...['quant_method', 'fmt', 'weight_block_size', 'modules_to_not_convert'],
  ...['scale_fmt', 'expert_dtype', 'format', 'ignore', 'config_groups'],
];

async function configOf(repository, folder) {
  if (folder !== undefined) {
    const file = path.join(folder, repository, 'config.json');
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  }
  const response = await fetch(`https://huggingface.co/${repository}/raw/main/config.json`);
  return response.ok ? response.text() : undefined;
}

/** Settings that say nothing of a model's tensors or of what it computes, or only of the names in its files. */
const UNREAD = [
  ...['bos_token_id', 'eos_token_id', 'use_cache', 'initializer_range', 'attention_dropout'],
  ...['torch_dtype', 'stored_prefix'],
];

/** A value without what is null, as most settings mean the same then. */
const given = (value) =>
  Array.isArray(value)
    ? value.map(given)
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value).flatMap(([key, each]) =>
            each == null ? [] : [[key, given(each)]],
          ),
        )
      : value;

/** The settings without those that change nothing, and what the family reads them as. */
function shortest(family, { family: _, ...all }) {
  const parsed = (model) => family.schema.parse({ model: { family: family.name, ...model } });
  let settings = Object.fromEntries(Object.entries(all).filter(([key]) => !UNREAD.includes(key)));
  const whole = parsed(settings);
  const built = family.build(whole);
  for (const key of Object.keys(settings)) {
    const { [key]: _, ...others } = settings;
    const { success } = family.schema.safeParse({ model: { family: family.name, ...others } });
    if (!success) continue;
    const without = parsed(others);
    const isSame =
      isDeepStrictEqual(given(without), given(whole)) ||
      (!STATED.has(key) && isBuiltAs(family, without, built));
    if (isSame) settings = others;
  }
  return { settings, read: whole.model };
}

/** Whether a document describes this model; some settings make sense only with others. */
function isBuiltAs(family, document, built) {
  try {
    return isDeepStrictEqual(family.build(document), built);
  } catch {
    return false;
  }
}

/** Settings that say something of a model and not of its tree. */
const STATED = new Set(['max_position_embeddings', 'encoder_attention_heads']);

/** Settings of one model that the other does not have. */
function differing({ settings, read }, base) {
  const gone = Object.keys(base).filter((key) => !Object.hasOwn(settings, key));
  const whole = { ...settings, ...Object.fromEntries(gone.map((key) => [key, read[key] ?? null])) };
  const own = Object.entries(whole).filter(([key, value]) => !isDeepStrictEqual(value, base[key]));
  return inOrder(Object.fromEntries(own), read);
}

/** Settings in the order of the family, which does not depend on where they come from. */
function inOrder(settings, read) {
  const order = Object.keys(read);
  const placeOf = (key) => (order.includes(key) ? order.indexOf(key) : order.length);
  return Object.fromEntries(
    Object.entries(settings).sort(([one], [other]) => placeOf(one) - placeOf(other)),
  );
}

function common(all) {
  const [first, ...others] = all;
  if (first === undefined || others.length === 0) return {};
  const same = ([key, value]) => others.every((each) => isDeepStrictEqual(each[key], value));
  return Object.fromEntries(Object.entries(first).filter(same));
}

async function settingsOf(series, size, folder) {
  const { family: name } = series;
  const [repository] = hubOf(series, size);
  const text = await configOf(repository, folder);
  if (text === undefined) {
    if (folder === undefined) console.error(`${repository}: not found, its sizes stay as they are`);
    return undefined;
  }
  const family = await loadFamily(name);
  const document = parseDocument(text, 'config.json');
  const { value } = await asOurDocument(document);
  if (value.model.family !== name)
    throw new Error(`${repository} is ${value.model.family}, not ${name}`);
  const { expert_dtype, text_config: inner, quantization_config: outer } = document.value;
  const stored = outer ?? inner?.quantization_config;
  const kept = Object.entries(stored ? { expert_dtype, ...stored } : {}).filter(
    ([key, part]) => STORED.includes(key) && part != null,
  );
  return {
    ...shortest(family, value.model),
    ...(kept.length > 0 && { quantization: Object.fromEntries(kept) }),
  };
}

/** The file with the sizes of `folder`, or of the hub. */
export async function rebuilt(file, folder) {
  const own = new Map();
  for (const series of file.series) {
    for (const [size, row] of Object.entries(series.sizes)) {
      if (row?.preset !== undefined) continue;
      const kept = async () => {
        const { schema } = await loadFamily(series.family);
        const settings = publishedSettings(file, series, size);
        const { model: read } = schema.parse({ model: { family: series.family, ...settings } });
        return { settings, read, quantization: row?.quantization ?? series.quantization };
      };
      own.set(
        `${series.family}/${series.names[0]}-${size}`,
        (await settingsOf(series, size, folder)) ?? (await kept()),
      );
    }
  }
  const of = (preset) => {
    const { family: _, ...settings } =
      own.get(preset)?.settings ?? presetDocument(...preset.split('/')).model;
    return settings;
  };
  const series = file.series.map(({ model: _, quantization: __, sizes, ...rest }) => {
    const rows = Object.entries(sizes);
    const described = rows.filter(([, row]) => row?.preset === undefined);
    const plain = described.filter(([, row]) => !row?.like);
    const get = (size) => own.get(`${rest.family}/${rest.names[0]}-${size}`);
    const [first] = plain.map(([size]) => get(size));
    const shared = inOrder(common(plain.map(([size]) => get(size).settings)), first?.read ?? {});
    const stored = common(described.map(([size]) => ({ stored: get(size).quantization }))).stored;
    return {
      ...rest,
      ...(Object.keys(shared).length > 0 && { model: shared }),
      ...(stored && { quantization: stored }),
      sizes: Object.fromEntries(
        rows.map(([size, row]) => {
          const { model: _, quantization: __, ...names } = row ?? {};
          const found = get(size);
          if (found === undefined) return [size, names];
          const base = row?.like ? of(row.like) : shared;
          const model = differing(found, base);
          return [
            size,
            {
              ...names,
              ...(found.quantization && !stored && { quantization: found.quantization }),
              ...(Object.keys(model).length > 0 && { model }),
            },
          ];
        }),
      ),
    };
  });
  return { ...file, series };
}

/** Texts that are the same without quotes. */
const PLAIN = /^(?!(?:true|false|null|yes|no|~)$)(?=.*[A-Za-z])[A-Za-z\d$][\w$./* -]*$/i;

const word = (value) =>
  typeof value === 'string' && !PLAIN.test(value) ? JSON.stringify(value) : String(value);

/** Lists of kinds of layers that are shorter stay as they are. */
const MOST_WORDS = 4;

/** Whether a number is a short one rounded to 32 bits, as configs saved from PyTorch have. */
const isRounded = (value) => typeof value === 'number' && Math.fround(value) === value;

/** The shortest decimal that is this number in 32 bits. */
const short32 = (value) =>
  [6, 7, 8, 9]
    .map((digits) => Number(value.toPrecision(digits)))
    .find((each) => Math.fround(each) === value);

const lettersOf = (names) =>
  Object.fromEntries(Object.entries(names).map(([letter, name]) => [name, letter]));

/** A part of the file with letters for the settings in its `model`. */
const lettered = (keys, { model, ...part }) => {
  const letterOf = lettersOf(keys);
  const settings = Object.entries(model ?? {}).map(([key, value]) => [letterOf[key] ?? key, value]);
  return { ...part, ...(model && { model: Object.fromEntries(settings) }) };
};

/** The text of a value, with a list of kinds of layers in letters. */
const flowIn = (kinds) => {
  const letterOf = lettersOf(kinds);
  const flow = (value) =>
    Array.isArray(value)
      ? value.length > MOST_WORDS && value.every((each) => Object.hasOwn(letterOf, each))
        ? flow({ kinds: value.map((each) => letterOf[each]).join('') })
        : value.every(isRounded) && !value.every(Number.isInteger)
          ? `{float32: [${value.map(short32).join(',')}]}`
          : `[${value.map(flow).join(',')}]`
      : typeof value === 'object' && value !== null
        ? `{${Object.entries(value)
            .map(([key, each]) => `${key}: ${flow(each)}`)
            .join(',')}}`
        : word(value);
  return flow;
};

/** The text of the file, below its own first comment. */
export function fileText(head, { sources, kinds, keys, series, elsewhere }) {
  const flow = flowIn(kinds);
  const lines = [head.trimEnd(), '', 'sources:'];
  for (const [key, text] of Object.entries(sources)) lines.push(`  ${key}: ${text}`);
  lines.push('', `kinds: ${flow(kinds)}`, `keys: ${flow(keys)}`);
  lines.push('', 'series:');
  for (const { sizes, ...rest } of series) {
    const parts = Object.entries(lettered(keys, rest)).map(
      ([key, value]) => `${key}: ${flow(value)}`,
    );
    lines.push(`- ${parts.join('\n  ')}`, '  sizes:');
    for (const [size, row] of Object.entries(sizes))
      lines.push(`   ${size}: ${flow(lettered(keys, row ?? {}))}`);
  }
  if (elsewhere) {
    lines.push('', 'elsewhere:');
    for (const row of elsewhere) lines.push(`- ${flow(row)}`);
  }
  return `${lines.join('\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder] = process.argv.slice(2).filter((word) => !word.startsWith('--'));
  const before = readFileSync(FILE, 'utf8');
  const head = before.slice(0, before.indexOf('sources:'));
  const after = fileText(head, await rebuilt(parse(before), folder));
  if (!process.argv.includes('--check')) writeFileSync(FILE, after);
  else if (before !== after) {
    console.error('configs/published.yaml is not up to date: run npm run published');
    process.exitCode = 1;
  }
}
