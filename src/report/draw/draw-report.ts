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

/**
 * A drawn model with what the renderers of pictures need.
 * @param part Whole path of the part that is drawn alone.
 */
export function drawReport(
  result: DrawResult,
  block: Omit<DiagramBlock, 'kind' | 'title'>,
  part: string | undefined = undefined,
): Report {
  const { file, parameters, flops, batch, context, blocks, against } = result;
  const name = modelName(file);
  const { diagram } = block;
  const groups = diagram.root.children.filter(({ blocks: numbers }) => numbers.length > 0);
  const areEqual = groups.length === 1 && groups[0]?.label === 'block';
  const kinds = blocks === 1 ? '1 block' : `${blocks} blocks`;
  const [top] = result.nodes;
  const path = part ?? (result.block === null ? undefined : `block ${result.block}`);
  const ofPart =
    path === undefined || top === undefined
      ? undefined
      : [
          `${path} of ${name}: ${partOfWhole(shortCount(top.parameters), shortCount(parameters))} parameters`,
          partOfWhole(formatFlops(top.flops), formatFlops(flops)),
        ].join(' · ');
  const titleOfModel = [
    `${name}: ${shortCount(parameters)} parameters`,
    kinds + (areEqual && blocks > 1 ? ', all equal' : ''),
    `${formatFlops(flops)} for ${formatSequences(batch, context)}`,
  ].join(' · ');
  const title = ofPart ?? titleOfModel;
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

/** `11.3 of 174.5 GFLOPs`: a unit that both have is said once. */
function partOfWhole(part: string, whole: string): string {
  const [[number = '', unit], [, unitOfWhole]] = [part, whole].map((text) => text.split(' ')) as [
    string[],
    string[],
  ];
  return `${unit !== undefined && unit === unitOfWhole ? number : part} of ${whole}`;
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
