/** Report of a sweep in parts: its plan, its progress, and what is missing. */
import type { SweepResult } from '../sweep/sweep.js';
import { formatBytes, formatDuration, formatInteger, significant } from '../text/units.js';
import { counted, shellWord, shortened } from '../text/words.js';
import { integerCell, leftColumn, noteOf, right } from './kit/cells.js';
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
      ...(more > 0 ? [noteOf(`… ${formatInteger(more)} more: --details`)] : []),
    ],
    details: shown.length > ANSWER_ROWS || action !== 'plan' ? [partsTable(result, parts)] : [],
    next: nextStep(result),
    data: partsTable(result, parts),
  };
}

function verdictOf(result: SweepResult): Verdict {
  const { action, parts, units, unitName, missing, array, ran } = result;
  const total = counted(parts.length, 'part');
  const done = `${formatInteger(parts.length - missing.length)} of ${total} done`;
  if (action === 'plan') {
    return {
      text: `Plan for ${formatInteger(units)} ${unitName} in ${total}: nothing was computed`,
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
  const { action, parts, ran, plan, missing, array, unitName, units, doneUnits } = result;
  const { memoryBytes, unitsPerSecond, secondsLeft } = result;
  if (action === 'plan') {
    const working = parts.filter((part) => part.units > 0).length;
    return [
      {
        name: 'parts',
        text:
          working < parts.length
            ? `${formatInteger(working)} have work: there are only ${formatInteger(units)} ${unitName}`
            : `${counted(parts.length, 'part')}, ${spreadText(result)}`,
        ...(working < parts.length && { tone: 'warning' as const }),
      },
      { name: 'memory', text: `about ${formatBytes(memoryBytes)} for each part` },
      { name: 'plan', text: plan.file },
    ];
  }
  const running = parts.filter(({ state }) => state === 'running');
  const stalled = parts.filter(({ state }) => state === 'stalled');
  return [
    ...(ran === null
      ? []
      : [
          {
            name: 'computed',
            text: `${formatInteger(ran.units - ran.unitsThere)} ${unitName} in ${formatDuration(ran.seconds)}`,
          },
        ]),
    { name: unitName, text: `${formatInteger(doneUnits)} of ${formatInteger(units)}` },
    ...(unitsPerSecond !== null && secondsLeft !== null
      ? [
          {
            name: 'rate',
            text: `${significant(unitsPerSecond)}/s, ${formatDuration(secondsLeft)} left`,
          },
        ]
      : []),
    ...(running.length > 0 ? [{ name: 'running', text: counted(running.length, 'part') }] : []),
    ...(stalled.length > 0
      ? [
          {
            name: 'stalled',
            text: `${counted(stalled.length, 'part')} without a sign of life: run again`,
            tone: 'warning' as const,
          },
        ]
      : []),
    ...(missing.length > 0 ? [{ name: 'missing', text: `--array=${shortened(array)}` }] : []),
  ];
}

/** `24 to 26 models`. */
function spreadText({ parts, unitName }: SweepResult): string {
  const counts = parts.map(({ units }) => units);
  const [least, most] = [Math.min(...counts), Math.max(...counts)].map(formatInteger);
  return least === most ? `${least} ${unitName} each` : `${least} to ${most} ${unitName}`;
}

const partsTable = ({ unitName }: SweepResult, parts: SweepResult['parts']): TableBlock => ({
  kind: 'table',
  columns: [
    right('part', 'part'),
    leftColumn('state', 'state'),
    right('done', 'done_units'),
    right(unitName, 'units'),
    leftColumn('host', 'hosts', true),
  ],
  rows: parts.map((part) => [
    integerCell(part.part),
    { text: part.state, ...(part.state === 'stalled' && { tone: 'warning' as const }) },
    integerCell(part.doneUnits),
    integerCell(part.units),
    { text: part.hosts.map((host) => shortened(host)).join(', ') },
  ]),
});

function nextStep({ action, command, plan, missing }: SweepResult): string {
  const start = `minimind ${command} --plan ${shellWord(plan.file)}`;
  if (action === 'plan') return `${start} --launch slurm`;
  return missing.length === 0 ? `${start} --finish` : `${start} --status`;
}
