/** What `minimind verify` prints: a verdict, a line for each fault, and what to do. */
import type { CheckpointFormat } from '../checkpoint/checkpoint.js';
import type { FaultKind, Said } from '../reconcile/faults.js';
import type { FaultGroup, Note } from '../reconcile/notes.js';
import type { Reconciliation } from '../reconcile/reconcile.js';
import type { Suggestion } from '../reconcile/suggest.js';
import { formatBytes, formatInteger } from '../text/units.js';
import { namesText, shortened } from './inspect/inspect-text.js';
import { integerCell, left, note, right } from './kit/cells.js';
import type { Block, Cell, Report } from './kit/report.js';
import { counted, FORMAT_NAMES, joined } from './kit/wording.js';

/** A value that the config and the config inside the checkpoint do not agree on. */
export interface ConfigDifference {
  /** `model.window_size`. */
  readonly path: string;
  readonly config: unknown;
  readonly checkpoint: unknown;
}

export interface VerifyResult extends Reconciliation {
  readonly config: string;
  readonly checkpoint: string;
  readonly format: CheckpointFormat;
  readonly stateDict: readonly string[];
  readonly counts: {
    /** Tensors of the description, each once. */
    readonly described: number;
    /** Names in the checkpoint. */
    readonly stored: number;
    /** Names with a fault. */
    readonly faulty: number;
  };
  readonly configDifferences: readonly ConfigDifference[];
}

const FAULTS = {
  'missing-layers': 'missing layers',
  'layer-gap': 'gap in layers',
  'extra-layers': 'extra layers',
  missing: 'missing',
  extra: 'extra',
  misshapen: 'misshapen',
  'wrong-dtype': 'wrong type',
  'not-tied': 'not tied',
  tied: 'wrongly tied',
} as const satisfies Record<FaultKind, string>;

/** More lines than this are for programs to read. */
const MOST_LINES = 100;

/** @param flat Whether the reader is a program, which gets every fault. */
export function verifyReport(result: VerifyResult, { flat }: { readonly flat: boolean }): Report {
  const { counts, faults, notes, suggestions, configDifferences } = result;
  const advised = new Set(
    suggestions.flatMap((each) => (each.kind === 'config' ? each.set.map(({ path }) => path) : [])),
  );
  return {
    blocks: [
      verdict(result),
      note(sourceText(result)),
      ...(faults.length > 0 || flat ? faultBlocks(faults, flat) : []),
      ...suggestions.map((each) => adviceBlock(each, counts.faulty)),
      ...notes.map(noteBlock),
      ...configDifferences.filter(({ path }) => !advised.has(path)).map(differenceBlock),
    ],
  };
}

/** `40 faults in 107 tensors`. */
export function faultCountText(faults: readonly FaultGroup[]): string {
  const faulty = faults.reduce((sum, { names }) => sum + names.length, 0);
  return `${counted(faults.length, 'fault')} in ${counted(faulty, 'tensor')}`;
}

function verdict({ matches, counts, faults }: VerifyResult): Block {
  if (matches) {
    return {
      kind: 'heading',
      text: `ok: ${counted(counts.described, 'tensor')} as described`,
      tone: 'good',
    };
  }
  const what =
    faults.length > 0 ? faultCountText(faults) : 'the tensors are, but there are warnings';
  return { kind: 'heading', text: `not as described: ${what}`, tone: 'bad' };
}

function sourceText({
  checkpoint,
  config,
  format,
  stateDict,
  prefix,
  counts,
}: VerifyResult): string {
  const where = stateDict.length > 0 ? ` in ${stateDict.join('.')}` : '';
  const stripped = prefix === '' ? '' : `, each without its ${JSON.stringify(prefix)}`;
  const names = `${counted(counts.stored, 'name')}${where}${stripped}`;
  return `${checkpoint} (${FORMAT_NAMES[format]}, ${names}), held against ${config}.`;
}

function faultBlocks(faults: readonly FaultGroup[], flat: boolean): Block[] {
  const shown = flat ? faults : faults.slice(0, MOST_LINES);
  const hasHints = shown.some(({ hint }) => hint !== null);
  const more = faults.length - shown.length;
  return [
    {
      kind: 'table',
      columns: [
        left('fault', 'fault'),
        left('tensors', 'tensors', true),
        right('count', 'count'),
        left('described', 'described', true),
        left('found', 'found', true),
        ...(hasHints ? [left('remark', 'remark', true)] : []),
      ],
      rows: shown.map(({ kind, pattern, names, expected, found, hint }): Cell[] => [
        { text: FAULTS[kind], value: kind, tone: 'bad' },
        { text: shortened(pattern) },
        integerCell(names.length),
        saidCell(expected),
        saidCell(found),
        ...(hasHints ? [{ text: hint ?? '' }] : []),
      ]),
    },
    ...(more > 0 ? [note(`And ${counted(more, 'more line')}; --json has them all.`)] : []),
  ];
}

/** A fault in a sentence without its tensors: `misshapen: described as [8], found F32 [9]`. */
export function faultText({ kind, expected, found }: FaultGroup): string {
  const said = [
    ...(expected ? [`described as ${saidCell(expected).text}`] : []),
    ...(found ? [`found ${saidCell(found).text}`] : []),
  ];
  return `${FAULTS[kind]}: ${said.join(', ')}`;
}

/** `F32 [64, 64]`, `values of embed_tokens.weight`, `32 layers`. */
function saidCell(said: Said | null): Cell {
  if (said === null) return { text: '–', value: '' };
  if (said.sameAs !== undefined) return { text: `values of ${shortened(said.sameAs)}` };
  if (said.layers !== undefined) return { text: counted(said.layers, 'layer') };
  const shape = said.shape ? `[${said.shape.join(', ')}]` : '';
  return { text: [said.dtype, shape].filter(Boolean).join(' ') };
}

function adviceBlock(suggestion: Suggestion, faulty: number): Block {
  const { leaves } = suggestion;
  const rest =
    leaves === 0
      ? 'That explains everything.'
      : `That leaves ${formatInteger(leaves)} of ${counted(faulty, 'tensor')}.`;
  return { kind: 'note', text: `→ ${adviceText(suggestion)} ${rest}` };
}

/** What to do about faults, in a sentence. */
export function adviceText(suggestion: Suggestion): string {
  if (suggestion.kind === 'rename') {
    return `every name begins with ${JSON.stringify(suggestion.prefix)}, which is none of the model’s: take it off.`;
  }
  const { set } = suggestion;
  const shows = joined(set.map((each) => each.shows));
  const keys = joined(set.map(({ path, value }) => `${path}: ${value}`));
  const convert = set.every(({ convertible }) => convertible) ? ', or convert the checkpoint' : '';
  return `${shows}: set ${keys}${convert}.`;
}

const NOTES = {
  'buffers-left-out': ({ names }) =>
    `${counted(names.length, 'buffer')} left out (${namesText(names)}): they follow from the config.`,
  'strict-load': ({ names }) =>
    `PyTorch’s load_state_dict(strict=True) would miss ${counted(names.length, 'name')}: ${namesText(names)}.`,
  'stored-again': ({ names, bytes = 0 }) =>
    `${counted(names.length, 'copy').replace('copys', 'copies')} of what the config has once: ${namesText(names)}, ${formatBytes(bytes)} in vain.`,
  'equal-values': ({ names, bytes = 0 }) =>
    `${counted(names.length, 'tensor')} with the values of another one (${namesText(names)}): sharing would save ${formatBytes(bytes)}.`,
  'kept-by-others': ({ names, bytes = 0, what = '' }) =>
    `${counted(names.length, 'tensor')} that the model does without (${namesText(names)}), ${formatBytes(bytes)}: ${what}.`,
} as const satisfies Record<Note['kind'], (note: Note) => string>;

const noteBlock = (each: Note): Block => ({
  kind: 'note',
  text: NOTES[each.kind](each),
  tone: each.severity === 'warning' ? 'warning' : 'dim',
});

const differenceBlock = (difference: ConfigDifference): Block => ({
  kind: 'note',
  text: `The ${differenceText(difference)}.`,
  tone: 'warning',
});

/** `config inside the checkpoint says model.window_size: 1024, not 7`. */
export const differenceText = ({ path, config, checkpoint }: ConfigDifference): string =>
  `config inside the checkpoint says ${path}: ${JSON.stringify(checkpoint)}, not ${JSON.stringify(config)}`;
