/** Report of a sweep in parts: its plan, its progress, and what is missing. */
import type { PartsAnswer } from '../parts/part-lock.js';
import type { SweepResult } from '../sweep/sweep.js';
import { formatBytes, formatDuration, formatInteger, significant } from '../text/units.js';
import { counted, present, shellWord, shortened } from '../text/words.js';
import { integerCell, leftColumn, moreNote, right, tableOf, wrapColumn } from './kit/cells.js';
import type { Fact, Report, TableBlock, Verdict } from './kit/report.js';

/** Rows of the answer's table; the details have all. */
const ANSWER_ROWS = 6;

export const sweepReport = (result: SweepResult): Report =>
  progressReport(result, {
    verdict: verdictOf(result),
    facts: factsOf(result),
    table: (parts) => partsTable(result, parts),
    next: nextStep(result.command, result),
  });

/** Report of work in parts: all parts of a plan, else those that are not done. */
export function progressReport<Part extends PartsAnswer['parts'][number]>(
  { action, parts }: { readonly action: PartsAnswer['action']; readonly parts: readonly Part[] },
  {
    verdict,
    facts,
    table,
    next,
  }: {
    readonly verdict: Verdict;
    readonly facts: readonly Fact[];
    readonly table: (parts: readonly Part[]) => TableBlock;
    readonly next: string;
  },
): Report {
  const shown = action === 'plan' ? parts : parts.filter(({ state }) => state !== 'done');
  return {
    verdict,
    blocks: [
      { kind: 'facts', facts },
      ...(shown.length > 0 ? [table(shown.slice(0, ANSWER_ROWS))] : []),
      ...moreNote(shown.length - ANSWER_ROWS, '--details'),
    ],
    details: shown.length > ANSWER_ROWS || action !== 'plan' ? [table(parts)] : [],
    next,
    data: table(parts),
  };
}

/** `1 model`, `2 models`. */
const unitsText = (count: number, plural: string): string =>
  counted(count, plural.replace(/s$/, ''));

function verdictOf(result: SweepResult): Verdict {
  const { action, parts, units, unitName } = result;
  if (action !== 'plan') return progressVerdict(result);
  const total = counted(parts.length, 'part');
  return { text: `Plan for ${unitsText(units, unitName)} in ${total}: nothing was computed` };
}

/** Verdict on a run of parts, or on the state of all. */
export function progressVerdict({ action, parts, missing, array, ran }: PartsAnswer): Verdict {
  const total = counted(parts.length, 'part');
  const done = `${formatInteger(parts.length - missing.length)} of ${total} done`;
  if (action === 'part' && ran !== null) return { text: ranText(ran), tone: 'good' };
  if (missing.length === 0) return { text: `${done}: --finish is next`, tone: 'good' };
  if (action === 'finish') {
    return { text: `Not finished: ${done}; missing: --array=${array}`, tone: 'bad' };
  }
  return { text: done };
}

function ranText({ parts, units, unitsThere }: NonNullable<PartsAnswer['ran']>): string {
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

/** Numbers of parts that run, that have stopped and that are missing. */
export function stateFacts({ parts, missing, array }: PartsAnswer): Fact[] {
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

type Part = PartsAnswer['parts'][number];

export const stateColumn = leftColumn('state', 'state', ({ state }: Part) => ({
  text: state,
  ...(state === 'stalled' && { tone: 'warning' as const }),
}));

export const hostsColumn = wrapColumn('host', 'hosts', ({ hosts }: Part) =>
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

/** Next command of work in parts. */
export function nextStep(command: string, { action, plan, missing }: PartsAnswer): string {
  const start = `minimind ${command} --plan ${shellWord(plan.file)}`;
  if (action === 'plan') return `${start} --launch slurm`;
  return missing.length === 0 ? `${start} --finish` : `${start} --status`;
}
