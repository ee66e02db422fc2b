/** Report of `minimind fit --gpu GPU` without a model: the largest published models for each use. */
import { nextCommand } from '../../base/text/setting.js';
import { formatBytes, formatInteger, shortCount, significant } from '../../base/text/units.js';
import { joined } from '../../base/text/words.js';
import type { LargestModels, LargestModelsResult } from '../../estimate/fit/largest-models.js';
import type { Cell, Field, Report } from '../kit/report.js';
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

type Row = LargestModels & { readonly model: LargestModels['models'][number] };

const TITLES = { lora: 'LoRA', qlora: 'QLoRA', train: 'training' } as const;

const useText = ({ use, dtype }: Pick<LargestModels, 'use' | 'dtype'>): string =>
  use === 'serve' ? `serving in ${dtype}` : TITLES[use];

export function fitModelsReport(result: LargestModelsResult): Report {
  const { uses, context, considered, cluster } = result;
  const rowsOf = (most: number): Row[] =>
    uses.flatMap((each) => each.models.slice(0, most).map((model) => ({ ...each, model })));
  const fields = fieldsOf(result);
  const serving = uses.find(({ use, dtype }) => use === 'serve' && dtype === 'int4') ?? uses[0];
  const [best] = serving?.models ?? [];
  return {
    verdict: { text: verdictText(result) },
    blocks: [
      tableOf(rowsOf(1), fields),
      noteOf(
        `Largest of ${formatInteger(considered)} published models, ${context === null ? '2,048 tokens' : `${formatInteger(context)} tokens`} for one sequence${cluster.gpus > 1 ? '; a training divides all its state (ZeRO-3)' : ''}. Memory and speed are estimates.`,
      ),
    ],
    details: [headingBlock('More models'), tableOf(rowsOf(Number.POSITIVE_INFINITY), fields)],
    ...(best && {
      next: nextCommand('fit', [lastPart(best.preset)], {
        gpu: cluster.gpu.name,
        ...(cluster.gpus > 1 && { gpus: cluster.gpus }),
        ...(serving?.dtype && !best.isAsPublished && { dtype: serving.dtype }),
      }),
    }),
    data: tableOf(rowsOf(Number.POSITIVE_INFINITY), fields),
  };
}

const lastPart = (preset: string) => preset.slice(preset.indexOf('/') + 1);

function fieldsOf({ cluster, memoryBytes }: LargestModelsResult): Field<Row>[] {
  return [
    leftColumn('use', 'use', (row) => ({
      ...strongCell(useText(row)),
      value: row.dtype ?? row.use,
    })),
    cutColumn(
      'model',
      'model',
      ({ model }): Cell => ({ text: lastPart(model.preset), value: model.preset }),
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

/** `On 1 × NVIDIA GeForce RTX 4090: serving up to 32.8B parameters in int4, QLoRA up to 14.8B` */
function verdictText({ cluster, uses }: LargestModelsResult): string {
  const hardware = `${cluster.gpus} × ${cluster.gpu.title}`;
  const most = (use: LargestModels['use']) =>
    uses
      .filter((each) => each.use === use)
      .flatMap(({ dtype, models: [first] }) =>
        first ? [{ dtype, parameters: first.parameters }] : [],
      )
      .sort((a, b) => b.parameters - a.parameters)[0];
  const serving = most('serve');
  const found = [
    ...(serving
      ? [`serves up to ${shortCount(serving.parameters)} parameters in ${serving.dtype}`]
      : []),
    ...(['lora', 'qlora', 'train'] as const).flatMap((use) => {
      const largest = most(use);
      return largest ? [`${TITLES[use]} up to ${shortCount(largest.parameters)}`] : [];
    }),
  ];
  return found.length > 0 ? `${hardware} ${joined(found)}` : `${hardware}: no published model fits`;
}
