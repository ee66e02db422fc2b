/** Report of a conversion in parts: its plan, its progress, and what is missing. */
import type { PartsResult } from '../../conversion/parts/parts.js';
import { formatBytes, formatDuration, formatInteger, formatShare } from '../../text/units.js';
import { counted, present, shellWord } from '../../text/words.js';
import { bytesCell, integerCell, right, tableOf } from '../kit/cells.js';
import type { Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import {
  hostsColumn,
  nextStep,
  progressReport,
  progressVerdict,
  stateColumn,
  stateFacts,
} from '../sweep-report.js';

export const partsReport = (result: PartsResult): Report =>
  progressReport(result, {
    verdict: verdictOf(result),
    facts: factsOf(result),
    table: partsTable,
    next: result.isFinished
      ? `minimind verify ${shellWord(result.output.path)}`
      : nextStep('convert-checkpoint', result),
  });

function verdictOf(result: PartsResult): Verdict {
  const { action, parts, output, isFinished } = result;
  if (action === 'plan') {
    const total = counted(parts.length, 'part');
    return { text: `Plan for ${output.path} in ${total}: nothing was converted` };
  }
  if (isFinished) return { text: `${output.path} is complete`, tone: 'good' };
  return progressVerdict(result);
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
