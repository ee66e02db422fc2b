/** Report of a conversion in parts: its plan, its progress, and what is missing. */
import type { PartsResult } from '../../conversion/parts/parts.js';
import { formatBytes, formatDuration, formatInteger, formatShare } from '../../text/units.js';
import { counted, present, shellWord } from '../../text/words.js';
import { bytesCell, integerCell, moreNote, right, tableOf } from '../kit/cells.js';
import type { Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import { hostsColumn, stateColumn, stateFacts } from '../sweep-report.js';

/** Rows of the answer's table; the details have all. */
const ANSWER_ROWS = 6;

export function partsReport(result: PartsResult): Report {
  const { parts, action } = result;
  const shown = action === 'plan' ? parts : parts.filter(({ state }) => state !== 'done');
  const more = shown.length - ANSWER_ROWS;
  const rows = shown.slice(0, ANSWER_ROWS);
  return {
    verdict: verdictOf(result),
    blocks: [
      { kind: 'facts', facts: factsOf(result) },
      ...(rows.length > 0 ? [partsTable(rows)] : []),
      ...moreNote(more, '--details'),
    ],
    details: shown.length > ANSWER_ROWS || action !== 'plan' ? [partsTable(parts)] : [],
    next: nextStep(result),
    data: partsTable(parts),
  };
}

function verdictOf({
  action,
  parts,
  output,
  missing,
  array,
  isFinished,
  ran,
}: PartsResult): Verdict {
  const total = counted(parts.length, 'part');
  const done = `${formatInteger(parts.length - missing.length)} of ${total} done`;
  if (action === 'plan')
    return { text: `Plan for ${output.path} in ${total}: nothing was converted` };
  if (isFinished) return { text: `${output.path} is complete`, tone: 'good' };
  if (action === 'part' && ran !== null) return { text: ranText(ran), tone: 'good' };
  if (missing.length === 0) return { text: `${done}: --finish is next`, tone: 'good' };
  if (action === 'finish') {
    return { text: `Not finished: ${done}; missing: --array=${array}`, tone: 'bad' };
  }
  return { text: done };
}

function ranText({ parts, units, unitsThere }: NonNullable<PartsResult['ran']>): string {
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

function factsOf(result: PartsResult): Fact[] {
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
            ? `${formatInteger(working)} with work: a part is whole files; a smaller --shard-size makes more`
            : `${counted(parts.length, 'part')} of whole files, ${spreadText(parts)}`,
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
function spreadText(parts: PartsResult['parts']): string {
  const bytes = parts.map((part) => part.bytes);
  const [least, most] = [Math.min(...bytes), Math.max(...bytes)].map(formatBytes);
  return least === most ? `${least} each` : `${least} to ${most}`;
}

const partsTable = (parts: PartsResult['parts']): TableBlock =>
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

function nextStep({ action, plan, missing, isFinished, output }: PartsResult): string | undefined {
  const command = `minimind convert-checkpoint --plan ${shellWord(plan.file)}`;
  if (isFinished) return `minimind verify ${shellWord(output.path)}`;
  if (action === 'plan') return `${command} --launch slurm`;
  return missing.length === 0 ? `${command} --finish` : `${command} --status`;
}
