/** Reports of work in parts, a sweep or a conversion: the plan, the progress, and the missing parts. */

import {
  type CommandName,
  isCommandName,
  type NextLine,
  nextCommand,
  type SettingValues,
  setting,
} from '../base/text/setting.js';
import {
  formatBytes,
  formatDuration,
  formatInteger,
  formatShare,
  significant,
} from '../base/text/units.js';
import { counted, shortened } from '../base/text/words.js';
import { present } from '../base/values.js';
import type { PartsResult } from '../scale/conversions/conversion-parts.js';
import type { PartsAnswer } from '../scale/planned-work.js';
import type { SweepResult } from '../scale/sweeps/sweep.js';
import type { Fact, Report, TableBlock, Verdict } from './kit/report.js';
import {
  bytesCell,
  integerCell,
  leftColumn,
  moreNote,
  right,
  tableOf,
  wrapColumn,
} from './kit/report.js';

/** Rows of the answer's table; the details have all. */
const ANSWER_ROWS = 6;

export const sweepReport = (result: SweepResult): Report =>
  progressReport(result, {
    verdict: sweepVerdict(result),
    facts: sweepFacts(result),
    table: (parts) => sweepTable(result, parts),
    next: isCommandName(result.command) ? nextStep(result.command, result) : undefined,
  });

/** Report of work in parts: all parts of a plan, otherwise the unfinished ones. */
function progressReport<Part extends PartsAnswer['parts'][number]>(
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
    readonly next: NextLine | undefined;
  },
): Report {
  const shown = action === 'plan' ? parts : parts.filter(({ state }) => state !== 'done');
  return {
    verdict,
    blocks: [
      { kind: 'facts', facts },
      ...(shown.length > 0 ? [table(shown.slice(0, ANSWER_ROWS))] : []),
      ...moreNote(shown.length - ANSWER_ROWS, 'details'),
    ],
    details: shown.length > ANSWER_ROWS || action !== 'plan' ? [table(parts)] : [],
    next,
    data: table(parts),
  };
}

/** `1 model`, `2 models`. */
const unitsText = (count: number, plural: string): string =>
  counted(count, plural.replace(/s$/, ''));

function sweepVerdict(result: SweepResult): Verdict {
  const { action, parts, units, unitName } = result;
  if (action !== 'plan') return progressVerdict(result);
  const total = counted(parts.length, 'part');
  return { text: `Plan for ${unitsText(units, unitName)} in ${total}: nothing was computed` };
}

/** Verdict on a run of some parts, or on the state of all. */
function progressVerdict({ action, parts, missing, array, ran }: PartsAnswer): Verdict {
  const total = counted(parts.length, 'part');
  const done = `${formatInteger(parts.length - missing.length)} of ${total} done`;
  if (action === 'part' && ran !== null) return { text: ranText(ran), tone: 'good' };
  if (missing.length === 0) return { text: `${done}: ${setting('finish')} is next`, tone: 'good' };
  if (action === 'finish') {
    return { text: `Not finished: ${done}; missing: ${arrayOption(array)}`, tone: 'bad' };
  }
  return { text: done };
}

/** Slurm's option for an array of parts. */
const arrayOption = (array: string) => `--array=${array}`;

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

function sweepFacts(result: SweepResult): Fact[] {
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

/** Numbers of parts that are running, stopped and missing. */
function stateFacts({ parts, missing, array }: PartsAnswer): Fact[] {
  const running = parts.filter(({ state }) => state === 'running').length;
  const stalled = parts.filter(({ state }) => state === 'stalled').length;
  return present([
    running > 0 && { name: 'running', text: counted(running, 'part') },
    stalled > 0 && {
      name: 'stalled',
      text: `${counted(stalled, 'part')} without a sign of life: run again`,
      tone: 'warning' as const,
    },
    missing.length > 0 && { name: 'missing', text: arrayOption(shortened(array)) },
  ]);
}

type Part = PartsAnswer['parts'][number];

const stateColumn = leftColumn('state', 'state', ({ state }: Part) => ({
  text: state,
  ...(state === 'stalled' && { tone: 'warning' as const }),
}));

const hostsColumn = wrapColumn('host', 'hosts', ({ hosts }: Part) =>
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

const sweepTable = ({ unitName }: SweepResult, parts: SweepResult['parts']): TableBlock =>
  tableOf(parts, [
    right('part', 'part', (part) => integerCell(part.part)),
    stateColumn,
    right('done', 'done_units', (part) => integerCell(part.doneUnits)),
    right(unitName, 'units', (part) => integerCell(part.units)),
    hostsColumn,
  ]);

/** Next command of work in parts. The progress names a part without a running process. */
function nextStep(
  command: CommandName,
  { action, plan, parts, missing }: PartsAnswer,
): NextLine | undefined {
  const next = (values: SettingValues) => nextCommand(command, [], { plan: plan.file, ...values });
  if (action === 'plan') return next({ launch: 'slurm' });
  if (missing.length === 0) return next({ finish: true });
  if (action !== 'status') return next({ status: true });
  const free = parts.find(({ state }) => state === 'missing' || state === 'stalled');
  return free && next({ part: free.part });
}

export const partsReport = (result: PartsResult): Report =>
  progressReport(result, {
    verdict: conversionVerdict(result),
    facts: conversionFacts(result),
    table: conversionTable,
    next: result.isFinished
      ? nextCommand('verify', [result.output.path])
      : nextStep('convertCheckpoint', result),
  });

function conversionVerdict(result: PartsResult): Verdict {
  const { action, parts, output, isFinished } = result;
  if (action === 'plan') {
    const total = counted(parts.length, 'part');
    return { text: `Plan for ${output.path} in ${total}: nothing was converted` };
  }
  if (isFinished) return { text: `${output.path} is complete`, tone: 'good' };
  return progressVerdict(result);
}

function conversionFacts(result: PartsResult): Fact[] {
  const { action, input, output, parts, ran, plan } = result;
  const { doneBytes, bytes, bytesPerSecond, secondsLeft } = result;
  const working = parts.filter((part) => part.files > 0 || part.slices > 0).length;
  const memory = Math.max(...parts.map(({ memoryBytes }) => memoryBytes));
  if (action === 'plan') {
    return [
      { name: 'input', text: `${counted(input.files, 'file')}, ${formatBytes(input.bytes)}` },
      { name: 'output', text: `${counted(output.files, 'file')}, ${formatBytes(output.bytes)}` },
      {
        name: 'parts',
        text:
          working < parts.length
            ? `${formatInteger(working)} with work: a part is whole files; a smaller ${setting('shardSize')} makes more`
            : `${counted(parts.length, 'part')} of whole files, ${sizesText(parts)}`,
        ...(working < parts.length && { tone: 'warning' as const }),
      },
      { name: 'memory', text: `about ${formatBytes(memory)} for each part` },
      { name: 'plan', text: plan.file },
    ];
  }
  return present([
    ran !== null && {
      name: 'wrote',
      text: `${formatBytes(ran.writtenBytes)} in ${formatDuration(ran.seconds)}`,
    },
    {
      name: 'files',
      text: `${formatBytes(doneBytes)} of ${formatBytes(bytes)} (${formatShare(doneBytes, Math.max(1, bytes))})`,
    },
    bytesPerSecond !== null &&
      secondsLeft !== null && {
        name: 'rate',
        text: `${formatBytes(bytesPerSecond)}/s, ${formatDuration(secondsLeft)} left`,
      },
    ...stateFacts(result),
  ]);
}

/** `412 MB to 530 MB`, of the bytes written by a part. */
function sizesText(parts: PartsResult['parts']): string {
  const bytes = parts.map((part) => part.bytes);
  const [least, most] = [Math.min(...bytes), Math.max(...bytes)].map(formatBytes);
  return least === most ? `${least} each` : `${least} to ${most}`;
}

const conversionTable = (parts: PartsResult['parts']): TableBlock =>
  tableOf(parts, [
    right('part', 'part', (part) => integerCell(part.part)),
    stateColumn,
    right('files', 'files', (part) => integerCell(part.files)),
    right('done', 'done_bytes', (part) => bytesCell(part.doneBytes)),
    right('writes', 'bytes', (part) => bytesCell(part.bytes)),
    right('reads', 'read_bytes', (part) => bytesCell(part.readBytes)),
    right('memory', 'memory_bytes', (part) => bytesCell(part.memoryBytes)),
    hostsColumn,
  ]);
