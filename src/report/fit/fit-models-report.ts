/** Report of `minimind fit --gpu GPU` without a model: the largest published models for each use. */
import { nextCommand, setting, withoutSettings } from '../../base/text/setting.js';
import {
  dtypeWord,
  formatBytes,
  formatInteger,
  shortCount,
  significant,
} from '../../base/text/units.js';
import { joined, modelName } from '../../base/text/words.js';
import type { LargestModels, LargestModelsResult } from '../../estimate/fit/largest-models.js';
import type { ListedModel } from '../../estimate/fit/listed-models.js';
import type { Cell, Field, Report, TableBlock } from '../kit/report.js';
import {
  cutColumn,
  headingBlock,
  leftColumn,
  noteOf,
  right,
  strongCell,
  tableOf,
  valueCell,
} from '../kit/report.js';
import { hardwareText } from './fit-places.js';

type Row = LargestModels & { readonly model: LargestModels['models'][number] };

const TITLES = { lora: 'LoRA', qlora: 'QLoRA', train: 'training' } as const;

const useText = ({ use, dtype }: Pick<LargestModels, 'use' | 'dtype'>): string =>
  use === 'serve' ? `serving in ${dtype}` : TITLES[use];

/** @param words The command line after `fit`. */
export function fitModelsReport(result: LargestModelsResult, words: readonly string[]): Report {
  const { uses, considered, cluster } = result;
  const rowsOf = (most: number): Row[] =>
    uses.flatMap((each) => each.models.slice(0, most).map((model) => ({ ...each, model })));
  const fields = fieldsOf(result);
  if (result.models.length > 0)
    return listReport(result, words, tableOf(rowsOf(Number.POSITIVE_INFINITY), fields));
  const serving = uses.find(({ use, dtype }) => use === 'serve' && dtype === 'int4') ?? uses[0];
  const [best] = serving?.models ?? [];
  return {
    verdict: { text: largestModelsVerdict(result) },
    blocks: [
      ...(uses.length > 0 ? [tableOf(rowsOf(uses.length === 1 ? 12 : 1), fields)] : []),
      noteOf(
        `Largest of ${formatInteger(considered)} published models, ${workloadText(result)}${cluster.gpus > 1 ? '; a training divides all its state (ZeRO-3)' : ''}. Memory and speed are estimates.`,
      ),
    ],
    details: [headingBlock('More models'), tableOf(rowsOf(Number.POSITIVE_INFINITY), fields)],
    ...(best && {
      next: nextCommand('fit', [modelName(best.preset), ...withoutSettings(words, ['dtype'])], {
        ...(serving?.dtype && !best.isAsPublished && { dtype: serving.dtype }),
      }),
    }),
    data: tableOf(rowsOf(Number.POSITIVE_INFINITY), fields),
  };
}

/** The models that generate text there, best first. */
function listReport(
  result: LargestModelsResult,
  words: readonly string[],
  others: TableBlock,
): Report {
  const { models, considered, cluster, context } = result;
  const [best] = models;
  const table = tableOf(models, listFields(result));
  const tokens =
    context === null ? 'memory and speed at 2,048 tokens' : `at ${formatInteger(context)} tokens`;
  return {
    verdict: {
      text: `${hardwareText(cluster)}: runs ${best ? `models up to ${shortCount(best.parameters)} parameters` : 'no published model'}`,
    },
    blocks: [
      table,
      noteOf(
        `The largest of each series among ${formatInteger(considered)} published models, in the widest type with 10 tokens/s or more; one sequence, ${tokens} (estimates). ${setting('for', 'lora')}: models to train.`,
      ),
    ],
    details: others.rows.length > 0 ? [headingBlock('Largest by use'), others] : [],
    ...(best && {
      next: nextCommand('fit', [modelName(best.name), ...withoutSettings(words, ['dtype'])], {
        ...(!best.isAsPublished && best.dtype !== 'bf16' && { dtype: dtypeWord(best.dtype) }),
      }),
    }),
    data: others.rows.length > 0 ? others : table,
  };
}

function listFields({ cluster, memoryBytes }: LargestModelsResult): Field<ListedModel>[] {
  const isAlone = cluster.gpu.kind === 'processor';
  return [
    cutColumn('model', 'model', ({ name }): Cell => ({ text: modelName(name), value: name })),
    right('parameters', 'parameters', ({ parameters }) => valueCell(parameters, shortCount)),
    leftColumn('type', 'dtype', ({ dtype }) => ({ text: dtypeWord(dtype), value: dtype })),
    right('longest context', 'longest_context', ({ longestContext }) =>
      valueCell(longestContext, formatInteger),
    ),
    right('tokens/s', 'tokens_per_second', ({ tokensPerSecond }) =>
      valueCell(tokensPerSecond, significant),
    ),
    right(cluster.gpus > 1 ? 'memory per GPU' : 'memory', 'memory_bytes', (row) => ({
      text: isAlone
        ? formatBytes(Math.round(row.memoryBytes))
        : `${formatBytes(Math.round(row.memoryBytes))} of ${formatBytes(Math.round(memoryBytes))}`,
      value: row.memoryBytes,
    })),
  ];
}

function fieldsOf({ cluster, memoryBytes }: LargestModelsResult): Field<Row>[] {
  return [
    leftColumn('use', 'use', (row) => ({
      ...strongCell(useText(row)),
      value: row.dtype ?? row.use,
    })),
    cutColumn(
      'model',
      'model',
      ({ model }): Cell => ({ text: modelName(model.preset), value: model.preset }),
    ),
    right('parameters', 'parameters', ({ model }) => valueCell(model.parameters, shortCount)),
    right(cluster.gpus > 1 ? 'memory per GPU' : 'memory', 'memory_bytes', ({ model }) => ({
      text: `${formatBytes(Math.round(model.memoryBytes))} of ${formatBytes(Math.round(memoryBytes))}`,
      value: model.memoryBytes,
    })),
    right('tokens/s', 'tokens_per_second', ({ model }) =>
      valueCell(model.tokensPerSecond, significant),
    ),
  ];
}

/** `2,048 tokens or the most that a model takes` */
const workloadText = ({ context, sequences }: LargestModelsResult): string =>
  [
    context === null
      ? '2,048 tokens or the most that a model takes'
      : `${formatInteger(context)} tokens`,
    ...(sequences === null ? ['one sequence'] : []),
  ].join(', ');

/** `1 × NVIDIA GeForce RTX 4090: serving up to 41.9B parameters in int4, QLoRA up to 20.6B` */
function largestModelsVerdict({ cluster, uses }: LargestModelsResult): string {
  const found = (['serve', 'lora', 'qlora', 'train'] as const).flatMap((use) => {
    const [largest] = uses
      .filter((each) => each.use === use)
      .flatMap(({ dtype, models: [first] }) => (first ? [{ dtype, ...first }] : []))
      .sort((a, b) => b.parameters - a.parameters);
    if (largest === undefined) return [];
    const size = shortCount(largest.parameters);
    return use === 'serve'
      ? [`serving up to ${size} parameters in ${largest.dtype}`]
      : [`${TITLES[use]} up to ${size}`];
  });
  const what = found.length > 0 ? joined(found) : 'no published model fits';
  return `${hardwareText(cluster)}: ${what}`;
}
