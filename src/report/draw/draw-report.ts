/** The report of a drawn model. */
import { formatFlops, formatSequences, shortCount } from '../../base/text/units.js';
import { modelName } from '../../base/text/words.js';
import type { DrawResult } from '../command-results.js';
import type { DiagramBlock } from '../kit/pictures.js';
import {
  flopsCell,
  integerCell,
  leftColumn,
  type Report,
  right,
  type TableBlock,
  tableOf,
} from '../kit/report.js';
import { diagramTable } from './diagram-tables.js';

/** A drawn model with what the renderers of pictures need. */
export function drawReport(
  result: DrawResult,
  block: Omit<DiagramBlock, 'kind' | 'title'>,
): Report {
  const { file, parameters, flops, batch, context, blocks, against } = result;
  const name = modelName(file);
  const { diagram } = block;
  const groups = diagram.root.children.filter(({ blocks: numbers }) => numbers.length > 0);
  const areEqual = groups.length === 1 && groups[0]?.label === 'block';
  const kinds = blocks === 1 ? '1 block' : `${blocks} blocks`;
  const title = [
    `${name}: ${shortCount(parameters)} parameters`,
    kinds + (areEqual && blocks > 1 ? ', all equal' : ''),
    `${formatFlops(flops)} for ${formatSequences(batch, context)}`,
  ].join(' · ');
  const versus =
    against === null ? '' : `, compared with ${modelName(against.file)}: ${changesText(against)}`;
  const drawing: DiagramBlock = { kind: 'diagram', title: title + versus, ...block };
  return {
    verdict: { text: title + versus },
    blocks: [drawing],
    details: block.isPart || block.hasTensors ? undefined : [diagramTable(drawing)],
    pictures: () => [drawing],
    data: nodesTable(result),
  };
}

const changesText = ({ added, removed, changed }: NonNullable<DrawResult['against']>): string =>
  added + removed + changed === 0
    ? 'no box differs'
    : [
        [added, 'added'],
        [removed, 'removed'],
        [changed, 'changed'],
      ]
        .filter(([number]) => Number(number) > 0)
        .map(([number, what]) => `${number} ${what}`)
        .join(', ');

const nodesTable = ({ nodes }: DrawResult): TableBlock =>
  tableOf(nodes, [
    leftColumn('id', 'id', ({ id }) => id),
    leftColumn('parent', 'parent', ({ parent }) => parent ?? ''),
    leftColumn('kind', 'kind', ({ kind }) => kind),
    leftColumn('label', 'label', ({ label }) => label),
    leftColumn('notes', 'notes', ({ notes }) => notes.join(' · ')),
    right('count', 'count', ({ count }) => integerCell(count)),
    right('width', 'width', ({ width }) => integerCell(width)),
    right('parameters', 'parameters', ({ parameters }) => integerCell(parameters)),
    right('FLOPs', 'flops', ({ flops }) => flopsCell(flops)),
    leftColumn('change', 'change', ({ change }) => change),
  ]);
