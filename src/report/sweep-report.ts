/** Report of a sweep in parts: its plan, its progress, and what is missing. */
import type { StateName } from '../parts/part-states.js';
import type { SweepResult } from '../sweep/sweep.js';
import { formatBytes, formatDuration, formatInteger, significant } from '../text/units.js';
import { counted, present, shellWord, shortened } from '../text/words.js';
import { integerCell, leftColumn, moreNote, right, tableOf, wrapColumn } from './kit/cells.js';
import type { Fact, Report, TableBlock, Verdict } from './kit/report.js';

/** Rows of the answer's table; the details have all. */
const ANSWER_ROWS = 6;

export function sweepReport(result: SweepResult): Report {
  const { parts, action } = result;
  const shown = action === 'plan' ? parts : parts.filter(({ state }) => state !== 'done');
  const more = shown.length - ANSWER_ROWS;
  return {
    verdict: verdictOf(result),
    blocks: [
      { kind: 'facts', facts: factsOf(result) },
      ...(shown.length > 0 ? [partsTable(result, shown.slice(0, ANSWER_ROWS))] : []),
      ...moreNote(more, '--details'),
    ],
    details: shown.length > ANSWER_ROWS || action !== 'plan' ? [partsTable(result, parts)] : [],
    next: nextStep(result),
    data: partsTable(result, parts),
  };
}

/** `1 model`, `2 models`. */
const unitsText = (count: number, plural: string): string =>
  counted(count, plural.replace(/s$/, ''));

function verdictOf(result: SweepResult): Verdict {
  const { action, parts, units, unitName, missing, array, ran } = result;
  const total = counted(parts.length, 'part');
  const done = `${formatInteger(parts.length - missing.length)} of ${total} done`;
  if (action === 'plan') {
    return {
      text: `Plan for ${unitsText(units, unitName)} in ${total}: nothing was computed`,
    };
  }
  if (action === 'part' && ran !== null) return { text: ranText(ran), tone: 'good' };
  if (missing.length === 0) return { text: `${done}: --finish is next`, tone: 'good' };
  if (action === 'finish') {
    return { text: `Not finished: ${done}; missing: --array=${array}`, tone: 'bad' };
  }
  return { text: done };
}

function ranText({ parts, units, unitsThere }: NonNullable<SweepResult['ran']>): string {
  const [first, ...others] = parts;
  const name =
    first === undefined
      ? 'This task has no part'
      : others.length === 0
        ? `Part ${first} is done`
        : `${counted(parts.length, 'part')} are done`;
  if (units === 0) return `${name}: nothing to do`;
  return unitsThere === units ? `${name} already` : name;
}

function factsOf(result: SweepResult): Fact[] {
  const { action, parts, ran, plan, unitName, units, doneUnits } = result;
  const { memoryBytes, unitsPerSecond, secondsLeft } = result;
  if (action === 'plan') {
    const working = parts.filter((part) => part.units > 0).length;
    return [
      {
        name: 'parts',
        text:
          working < parts.length
            ? `${formatInteger(working)} of ${formatInteger(parts.length)} have work${units < parts.length ? `: the sweep has only ${unitsText(units, unitName)}` : ''}`
            : `${counted(parts.length, 'part')}, ${spreadText(result)}`,
        ...(working < parts.length && { tone: 'warning' as const }),
      },
      { name: 'memory', text: `about ${formatBytes(memoryBytes)} for each part` },
      { name: 'plan', text: plan.file },
    ];
  }
  return present([
    ran !== null && {
      name: 'computed',
      text: `${unitsText(ran.units - ran.unitsThere, unitName)} in ${formatDuration(ran.seconds)}`,
    },
    { name: unitName, text: `${formatInteger(doneUnits)} of ${formatInteger(units)}` },
    unitsPerSecond !== null &&
      secondsLeft !== null && {
        name: 'rate',
        text: `${significant(unitsPerSecond)}/s, ${formatDuration(secondsLeft)} left`,
      },
    ...stateFacts(result),
  ]);
}

/** What every answer about parts says of those that are not done. */
interface PartStates {
  readonly parts: readonly { readonly state: StateName }[];
  readonly missing: readonly number[];
  readonly array: string;
}

/** Numbers of parts that run, that have stopped and that are missing. */
export function stateFacts({ parts, missing, array }: PartStates): Fact[] {
  const running = parts.filter(({ state }) => state === 'running').length;
  const stalled = parts.filter(({ state }) => state === 'stalled').length;
  return present([
    running > 0 && { name: 'running', text: counted(running, 'part') },
    stalled > 0 && {
      name: 'stalled',
      text: `${counted(stalled, 'part')} without a sign of life: run again`,
      tone: 'warning' as const,
    },
    missing.length > 0 && { name: 'missing', text: `--array=${shortened(array)}` },
  ]);
}

export const stateColumn = leftColumn(
  'state',
  'state',
  ({ state }: { readonly state: StateName }) => ({
    text: state,
    ...(state === 'stalled' && { tone: 'warning' as const }),
  }),
);

export const hostsColumn = wrapColumn(
  'host',
  'hosts',
  ({ hosts }: { readonly hosts: readonly string[] }) =>
    hosts.map((host) => shortened(host)).join(', '),
);

/** `24 to 26 models`. */
function spreadText({ parts, unitName }: SweepResult): string {
  const counts = parts.map(({ units }) => units);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most
    ? `${unitsText(least, unitName)} each`
    : `${formatInteger(least)} to ${unitsText(most, unitName)}`;
}

const partsTable = ({ unitName }: SweepResult, parts: SweepResult['parts']): TableBlock =>
  tableOf(parts, [
    right('part', 'part', (part) => integerCell(part.part)),
    stateColumn,
    right('done', 'done_units', (part) => integerCell(part.doneUnits)),
    right(unitName, 'units', (part) => integerCell(part.units)),
    hostsColumn,
  ]);

function nextStep({ action, command, plan, missing }: SweepResult): string {
  const start = `minimind ${command} --plan ${shellWord(plan.file)}`;
  if (action === 'plan') return `${start} --launch slurm`;
  return missing.length === 0 ? `${start} --finish` : `${start} --status`;
}
