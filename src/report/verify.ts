import { FILE_FORMATS } from '../checkpoint/formats.js';
import type { VerifyResult } from '../model-input/verify-checkpoint.js';
import type { TensorProperties } from '../reconcile/faults.js';
import type { FaultGroup, Note } from '../reconcile/notes.js';
import type { ConfigDifference, Suggestion } from '../reconcile/reconcile.js';
import {
  adviceText,
  configDifferenceText,
  FAULT_NAMES,
  faultCountText,
  saidText,
} from '../reconcile/reconcile.js';
import { formatBytes, formatInteger } from '../text/units.js';
import { counted, namesText, shortened } from '../text/words.js';
import { integerCell, left, note, right } from './kit/cells.js';
import type { Block, Cell, Report } from './kit/report.js';

/** Report of `minimind verify`: a verdict, one line per fault, and suggestions. */

/** Longer lists are only for programs. */
const MOST_LINES = 100;

/** @param flat Whether to output every fault, for programs. */
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
  return `${checkpoint} (${FILE_FORMATS[format].title}, ${names}), held against ${config}.`;
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
        { text: FAULT_NAMES[kind], value: kind, tone: 'bad' },
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

const saidCell = (said: TensorProperties | null): Cell =>
  said === null ? { text: '–', value: '' } : { text: saidText(said) };

function adviceBlock(suggestion: Suggestion, faulty: number): Block {
  const { leaves } = suggestion;
  const rest =
    leaves === 0
      ? 'That explains everything.'
      : `That leaves ${formatInteger(leaves)} of ${counted(faulty, 'tensor')}.`;
  return { kind: 'note', text: `→ ${adviceText(suggestion)} ${rest}` };
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
  text: `The ${configDifferenceText(difference)}.`,
  tone: 'warning',
});
