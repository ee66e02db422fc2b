/** Tables of all accelerators and machines, and the lookup by name. */

import { type UserError, usageError } from '../../base/errors.js';
import { commandText, setting } from '../../base/text/setting.js';
import { nearest, nearestWithDigits } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { GEFORCE } from './geforce.js';
import type { Cluster, Gpu, GpuMachine, Hardware, Link } from './gpu.js';
import { NVIDIA_DATA_CENTER, NVIDIA_WORKSTATION } from './nvidia.js';
import { OTHER_MAKERS } from './other-makers.js';

export const GPUS: readonly Gpu[] = [
  ...NVIDIA_DATA_CENTER,
  ...NVIDIA_WORKSTATION,
  ...GEFORCE,
  ...OTHER_MAKERS,
];

/**
 * GPU by name; a user's file precedes the table.
 * @throws UserError with the nearest name if there is none.
 */
export function gpuNamed(name: string, more: readonly Gpu[] = []): Gpu {
  const found = [...more, ...GPUS].find((gpu) => gpu.name === name);
  if (found) return found;
  throw usageError(`unknown GPU ${quote(name)}`, nameSuggestion(name, [...more, ...GPUS]));
}

/** Suggestion for an unknown name. */
export function nameSuggestion(name: string, among: readonly { readonly name: string }[]): string {
  const names = among.map((each) => each.name);
  // A prefix such as `h100` has several matches, none of them close in spelling.
  const longer = names.filter((each) => each.startsWith(`${name.toLowerCase()}-`));
  if (longer.length > 1) return `write one of ${longer.join(', ')}`;
  const [only = nearest(name, names)] = longer;
  return only ? `did you mean ${only}?` : `see ${commandText('fit')} ${setting('listGpus')}`;
}

/** Network between machines, from Gbit/s per GPU. */
const network = (name: string, gigabitsPerSecond: number): Link => ({
  name,
  bandwidth: (gigabitsPerSecond * 1e9) / 8,
  gpus: Number.POSITIVE_INFINITY,
});

/** Four ports of 100 Gbit/s for eight GPUs. */
const INFINIBAND_EDR = network('InfiniBand EDR', 50);
const INFINIBAND_HDR = network('InfiniBand HDR', 200);
const INFINIBAND_NDR = network('InfiniBand NDR', 400);
const INFINIBAND_XDR = network('InfiniBand XDR', 800);
const EFA_400 = network('EFA, 400 Gbit/s of 8', 50);
const EFA_3200 = network('EFA, 3200 Gbit/s of 8', 400);
const EFA_6400 = network('EFA, 6400 Gbit/s of 8', 800);
const ETHERNET_100 = network('Ethernet, 100 Gbit/s of 8', 12.5);
const TCPXO = network('GPUDirect-TCPXO', 200);

const SURVEY = 'stas00, ml-engineering, network (2025)';

function nvidiaSheet(product: string, year: number): string {
  return `NVIDIA ${product} datasheet (${year})`;
}

function ec2Page(instances: string, year: number): string {
  return `Amazon EC2 ${instances} instances, product page (${year})`;
}

/** Name, title, GPU, its share of the network if known, source, number of GPUs if not 8. */
type MachineRow = readonly [string, string, string, Link | null, string, number?];

const MACHINE_ROWS: readonly MachineRow[] = [
  [
    'dgx-1-v100',
    'NVIDIA DGX-1 with 8 V100',
    'v100-32gb',
    INFINIBAND_EDR,
    nvidiaSheet('DGX-1', 2019),
  ],
  [
    'dgx-a100',
    'NVIDIA DGX A100 640 GB',
    'a100-80gb',
    INFINIBAND_HDR,
    nvidiaSheet('DGX A100', 2021),
  ],
  ['dgx-h100', 'NVIDIA DGX H100', 'h100-80gb', INFINIBAND_NDR, nvidiaSheet('DGX H100', 2023)],
  ['dgx-h200', 'NVIDIA DGX H200', 'h200', INFINIBAND_NDR, nvidiaSheet('DGX H200', 2024)],
  ['hgx-h200', 'NVIDIA HGX H200 with 8 GPUs', 'h200', null, nvidiaSheet('H200', 2024)],
  ['dgx-b200', 'NVIDIA DGX B200', 'b200', INFINIBAND_NDR, nvidiaSheet('DGX B200', 2024)],
  ['dgx-b300', 'NVIDIA DGX B300', 'b300', INFINIBAND_XDR, nvidiaSheet('DGX B300', 2025)],
  [
    'gb200-nvl72',
    'NVIDIA GB200 NVL72, as in DGX GB200',
    'gb200',
    INFINIBAND_NDR,
    nvidiaSheet('DGX GB200', 2024),
    72,
  ],
  ['hgx-h20', 'NVIDIA HGX H20 with 8 GPUs', 'h20', null, 'as reported by SemiAnalysis (2023)'],
  ['p4d.24xlarge', 'Amazon EC2 p4d.24xlarge', 'a100-40gb', EFA_400, ec2Page('P4', 2020)],
  ['p5.48xlarge', 'Amazon EC2 p5.48xlarge', 'h100-80gb', EFA_3200, ec2Page('P5', 2023)],
  ['p5e.48xlarge', 'Amazon EC2 p5e.48xlarge', 'h200', EFA_3200, SURVEY],
  ['p5en.48xlarge', 'Amazon EC2 p5en.48xlarge', 'h200', EFA_3200, SURVEY],
  ['p6-b200.48xlarge', 'Amazon EC2 p6-b200.48xlarge', 'b200', EFA_3200, SURVEY],
  ['p6-b300.48xlarge', 'Amazon EC2 p6-b300.48xlarge', 'b300', EFA_6400, SURVEY],
  ['a3-megagpu-8g', 'Google Cloud a3-megagpu-8g', 'h100-80gb', TCPXO, SURVEY],
  ['g5.48xlarge', 'Amazon EC2 g5.48xlarge', 'a10g', ETHERNET_100, ec2Page('G5', 2021)],
  [
    'mi300x-platform',
    'AMD Instinct MI300X platform',
    'mi300x',
    null,
    'AMD Instinct MI300X platform datasheet (2023)',
  ],
];

/** Machines sold with several GPUs, each with its share of the network. */
export const MACHINES: readonly GpuMachine[] = MACHINE_ROWS.map(
  ([name, title, gpu, network, source, gpus = 8]) => ({
    name,
    title,
    gpu: gpuNamed(gpu),
    gpus,
    network,
    source,
  }),
);

/** User's hardware with the table; the user's entries replace those of the same name. */
export const withKnownHardware = (own: Hardware): Hardware => ({
  gpus: mergedTables(own.gpus, GPUS),
  machines: mergedTables(own.machines, MACHINES),
});

const mergedTables = <T extends { readonly name: string }>(
  own: readonly T[],
  table: readonly T[],
) => [...own, ...table.filter(({ name }) => !own.some((each) => each.name === name))];

/**
 * Cluster of GPUs by name, or a machine by name with its GPUs; with a count as in `8xA100`.
 * @param gpus Number of GPUs; undefined: one of a GPU, all of a machine.
 * @param say Called with the choice when the name could mean several.
 * @throws UserError with the nearest name if there is neither, and for two counts that differ.
 */
export function clusterNamed(
  text: string,
  gpus: number | undefined,
  own: Hardware,
  say: (choice: string) => void = () => {},
): Cluster {
  const { gpus: knownGpus, machines } = withKnownHardware(own);
  const isName = [...knownGpus, ...machines].some(({ name }) => name === text);
  const { name, count } = isName ? { name: text } : splitCount(cloudInstance(text) ?? text);
  const { entry, others } = entryNamed(name, [...knownGpus, ...machines]);
  if (others.length > 0) {
    const names = others.map((each) => each.name).join(', ');
    say(`${setting('gpu')} ${name}: using ${entry.name} (${entry.title}); also ${names}`);
  }
  const [gpu, each, network] =
    'gpu' in entry ? [entry.gpu, entry.gpus, entry.network] : [entry, 1, null];
  const counted = count === undefined ? undefined : count * each;
  if (counted === 0 || (counted !== undefined && gpus !== undefined && gpus !== counted)) {
    const suggestion = `write ${setting('gpu', entry.name)} ${setting('gpus', gpus ?? 1)}`;
    const found = gpus === undefined ? '' : ` and ${setting('gpus', gpus)}`;
    throw usageError(`expected one number of GPUs, found ${quote(text)}${found}`, suggestion);
  }
  const machine = 'gpu' in entry && { machine: entry.name };
  return { gpu, gpus: gpus ?? counted ?? each, network, ...machine };
}

// Reads names of GPUs and machines as people write them: `RTX 4090`, `h100`, `8xA100`, `A100 80GB`

interface Named {
  readonly name: string;
  readonly title: string;
}

/** `8 x a100`, `2×4090`, `4090 x 2`; the first letter of a name is never the sign. */
const COUNT_BEFORE = /^\s*(\d{1,5})\s*[x×*]\s*(\D.*|\d{2,}.*)$/i;
const COUNT_AFTER =
  /^(.*?\S)\s*[×*:]\s*(\d{1,5})\s*$|^(.*?\S)\s+x\s*(\d{1,5})\s*$|^(.*?\d[a-wyz]{0,2})x(\d{1,3})\s*$/i;

/** `2 4090`, `8 h100`; `24 GB` is a memory. */
const COUNT_APART = /^\s*(\d{1,3})\s+((?!g?i?b\b)[a-z].*|\d{4}\b.*)$/i;

/** Words before the name of a GPU that say where it is. */
const PLACE =
  /^\s*(?:google\s+)?(?:colab|kaggle|runpod|lambda|vast(?:\.ai)?|aws|gcp|azure|paperspace|modal)(?:\s+(?:pro|free|plus))?\s+/i;

/**
 * Instances of clouds by their GPUs. Amazon EC2: G4, G5, G6, G6e, P3 and P4 product pages (2025). Google Cloud: GPU machine
 * types (2025). Azure: NC A100 v4, ND H100 v5 (2025).
 */
const INSTANCES: readonly (readonly [RegExp, string])[] = [
  [/^g4dn\.(?:x|2x|4x|8x|16x)large$/, 't4'],
  [/^g4dn\.12xlarge$/, '4 x t4'],
  [/^g5\.(?:x|2x|4x|8x|16x)large$/, 'a10g'],
  [/^g5\.(?:12|24)xlarge$/, '4 x a10g'],
  [/^g6\.(?:x|2x|4x|8x|16x)large$/, 'l4'],
  [/^g6\.(?:12|24)xlarge$/, '4 x l4'],
  [/^g6e\.(?:x|2x|4x|8x|16x)large$/, 'l40s'],
  [/^p3\.2xlarge$/, 'v100-16gb'],
  [/^p3\.8xlarge$/, '4 x v100-16gb'],
  [/^p3\.16xlarge$/, '8 x v100-16gb'],
  [/^p4de\.24xlarge$/, '8 x a100-80gb'],
  [/^a2-highgpu-1g$/, 'a100-40gb'],
  [/^a2-highgpu-8g$/, '8 x a100-40gb'],
  [/^a2-ultragpu-1g$/, 'a100-80gb'],
  [/^a2-ultragpu-8g$/, '8 x a100-80gb'],
  [/^a3-highgpu-8g$/, '8 x h100-80gb'],
  [/^g2-standard-(?:4|8|12|16|32)$/, 'l4'],
  [/^standard_nc24ads_a100_v4$/, 'a100-pcie-80gb'],
  [/^standard_nd96isr_h100_v5$/, '8 x h100-80gb'],
];

/** The GPUs of an instance of a cloud. */
const cloudInstance = (text: string): string | undefined =>
  INSTANCES.find(([name]) => name.test(text.trim().toLowerCase()))?.[1];

/** A name and its count. */
export function splitCount(text: string): { readonly name: string; readonly count?: number } {
  const own = text.replace(PLACE, '');
  const [, before, name] = COUNT_BEFORE.exec(own) ?? COUNT_APART.exec(own) ?? [];
  if (before !== undefined && name !== undefined) return { name, count: Number(before) };
  const after = COUNT_AFTER.exec(own);
  const first = after?.[1] ?? after?.[3] ?? after?.[5];
  if (first === undefined) return { name: own };
  return { name: first, count: Number(after?.[2] ?? after?.[4] ?? after?.[6]) };
}

/** Meaning of a name. */
interface NameMatch<Entry> {
  readonly entry: Entry;
  /** Other entries that the name could mean. */
  readonly others: readonly Entry[];
}

/** Words that most names leave out; they make no difference between two entries. */
const SERIES: ReadonlySet<string> = new Set(['rtx', 'rx', 'arc', 'radeon', 'ryzen', 'tpu']);

/** Most common variant of a name without its memory, where it is not the first of the table. */
const USUAL: ReadonlySet<string> = new Set(['a100-80gb']);

/**
 * The entry that `text` means. Every word of the text must be a word of the name or of the title, in their order. Of
 * several entries the one with the fewest further words is chosen, and of those the most common.
 * @throws UserError with the nearest name when there is none.
 */
function entryNamed<Entry extends Named>(
  text: string,
  entries: readonly Entry[],
): NameMatch<Entry> {
  const exact = entries.find(({ name }) => name === text);
  if (exact) return { entry: exact, others: [] };
  const query = foldedGpuName(text);
  if (query === '') throw unknown(text, entries);
  const same = entries.find(({ name }) => foldedGpuName(name) === query);
  if (same) return { entry: same, others: [] };
  const inOrder = matching(entries, (entry) => furtherWords(query, entry));
  const found =
    inOrder.length > 0 ? inOrder : matching(entries, (entry) => furtherInAnyOrder(text, entry));
  const least = Math.min(...found.map(({ further }) => further));
  const [first, ...more] = found.filter(({ further }) => further === least);
  if (first === undefined) throw unknown(text, entries);
  const usual = [first, ...more].find(({ entry }) => USUAL.has(entry.name)) ?? first;
  const others = found.filter(({ entry, further }) => entry !== usual.entry && further > 0);
  // A bare number is also the beginning of other names: 4060 of the Ti.
  const isWhole = least === 0 && !/^\d{4}$/.test(query);
  return { entry: usual.entry, others: isWhole ? [] : others.map(({ entry }) => entry) };
}

/** Entries that a name can mean, with the number of words that it lacks. */
const matching = <Entry extends Named>(
  entries: readonly Entry[],
  furtherOf: (entry: Entry) => number | undefined,
) =>
  entries.flatMap((entry) => {
    const further = furtherOf(entry);
    return further === undefined ? [] : [{ entry, further }];
  });

/** Makers, and words that drivers add: the kind of memory, `Generation`. */
const MAKER =
  /\b(?:nvidia|geforce|tesla|quadro|amd|instinct|apple|intel|google|aws|hbm\d?e?|generation|edition|gpu|graphics|480gb)\b/g;

/** A computer of Apple, in addition to the name of its chip. */
const MAC = /\b(?:macbook|imac|mac)(?:\s*(?:pro|air|mini|studio))?\b/g;

/** Lower case, without makers and separators; `sxm5` is `sxm`. */
const foldedGpuName = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll('_', ' ')
    .replaceAll(MAC, ' ')
    .replaceAll(MAKER, ' ')
    .replaceAll(/sxm\d/g, 'sxm')
    .replaceAll(/(\d)\s*gi?b?\b/g, '$1gb')
    .replaceAll(/[^a-z0-9]/g, '');

const gpuWords = (text: string): string[] =>
  text
    .toLowerCase()
    .replaceAll(MAC, ' ')
    .replaceAll(MAKER, ' ')
    .replaceAll(/sxm\d/g, 'sxm')
    .replaceAll(/(\d)\s+gb\b/g, '$1gb')
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');

/** Number of words of the name that `wanted` lacks; undefined when the entry is another one. */
function furtherWords(query: string, { name, title }: Named): number | undefined {
  const own = gpuWords(name);
  const byName = lacking(query, own);
  const counted = byName ?? lacking(query, gpuWords(title));
  return counted?.filter((word) => own.includes(word) && !SERIES.has(word)).length;
}

/** The same for words in any order: `A100 80GB PCIe` is a100-pcie-80gb. */
function furtherInAnyOrder(text: string, { name, title }: Named): number | undefined {
  const wanted = gpuWords(text);
  const own = gpuWords(name);
  const all = new Set([...own, ...gpuWords(title)]);
  const isThis = wanted.length > 1 && wanted.every((word) => all.has(word));
  if (!isThis || !wanted.some((word) => own.includes(word))) return undefined;
  return own.filter((word) => !wanted.includes(word) && !SERIES.has(word)).length;
}

/** The words that are left over when the others, in their order, are `wanted`. */
function lacking(query: string, words: readonly string[]): string[] | undefined {
  const [word, ...rest] = words;
  if (word === undefined) return query === '' ? [] : undefined;
  // A memory can be written without its unit.
  for (const spelling of [word, word.replace(/(?<=^\d+)gb$/, '')]) {
    if (!query.startsWith(spelling)) continue;
    const after = lacking(query.slice(spelling.length), rest);
    if (after) return after;
  }
  const without = query === '' ? [...rest] : lacking(query, rest);
  return without && [word, ...without];
}

/** Names that mean one of many chips. */
const MANY =
  /^\s*(?:mac|macbook|mac\s*book|imac|mac\s*mini|mac\s*studio|apple(?:\s*silicon)?|m-?series)(?:\s*(?:air|pro|laptop))?\s*$/i;

function unknown(text: string, entries: readonly Named[]): UserError {
  const message = `unknown GPU or machine ${quote(text)}`;
  if (MANY.test(text)) {
    const chips = entries.filter(({ name }) => /^m\d-\d+gb$/.test(name)).map(({ name }) => name);
    return usageError(message, `write its chip and memory, one of ${chips.join(', ')}`);
  }
  if (/\b(?:laptop|mobile|max-?q|notebook)\b/i.test(text)) {
    const desktop = text.replaceAll(/\b(?:laptop|mobile|max-?q|notebook|gpu)\b/gi, ' ').trim();
    const query = foldedGpuName(desktop);
    const named = entries.filter((entry) => query !== '' && furtherWords(query, entry) === 0);
    const names = named.map(({ name }) => name);
    const card = names.length > 0 ? `${names.join(', ')} is the desktop card; ` : '';
    return usageError(
      `${message}, a card of laptops`,
      `${card}describe it in a file for ${setting('hardware', 'FILE')}`,
    );
  }
  // A name with other digits, or another first letter, is another card.
  const [letter = ''] = foldedGpuName(text);
  const alike = entries.filter(({ name }) => foldedGpuName(name).startsWith(letter));
  const bases = alike.map(({ name }) => name.replace(/-\d+gb$/, ''));
  const names = alike.map(({ name }) => name);
  const query = foldedGpuName(text);
  const longer = names.filter((name) => query.length > 3 && foldedGpuName(name).startsWith(query));
  // A digit that was typed twice: h1000.
  const once = query.replace(/(\d)\1$/, '$1');
  const close =
    (longer.length === 1 ? longer[0] : undefined) ??
    bases.find((base) => once !== query && foldedGpuName(base) === once) ??
    nearestWithDigits(text, [...names, ...bases]) ??
    nearestWithDigits(foldedGpuName(text), bases.map(foldedGpuName));
  return usageError(
    message,
    close
      ? `did you mean ${close}?`
      : `see ${commandText('fit')} ${setting('listGpus')}, or describe it in a file for ${setting('hardware', 'FILE')}`,
  );
}

/** Entries whose name or title contains every word of a pattern. */
export function entriesMatching<Entry extends Named>(
  pattern: string,
  entries: readonly Entry[],
): Entry[] {
  const words = pattern
    .toLowerCase()
    .split(/[^a-z0-9.]+/)
    .filter(Boolean);
  return entries.filter(({ name, title }) => {
    const own = `${name} ${title}`.toLowerCase();
    return (
      words.every((word) => own.includes(word)) ||
      foldedGpuName(own).includes(foldedGpuName(pattern))
    );
  });
}
