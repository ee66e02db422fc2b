/** Tensors of a diagram as tables. */
import { formatInteger } from '../../base/text/units.js';
import type { DiagramNode, DiagramTensor } from '../../model/diagram/diagram.js';
import type { DiagramBlock } from '../kit/pictures.js';
import { integerCell, leftColumn, right, type TableBlock, tableOf } from '../kit/report.js';

const shapeOf = ({ shape }: DiagramTensor): string => `(${shape.map(formatInteger).join(', ')})`;

/** A row for each tensor of one box. Columns that would say nothing are left out. */
export const tensorTable = ({ tensors }: DiagramNode): TableBlock =>
  tableOf(tensors, [
    leftColumn('tensor', 'tensor', ({ name }) => name),
    leftColumn('shape', 'shape', shapeOf),
    tensors.some(({ count }) => count > 1) &&
      right('count', 'count', ({ count }) => integerCell(count)),
    tensors.some(({ dtype }) => dtype !== null) &&
      leftColumn('type', 'dtype', ({ dtype }) => dtype ?? ''),
    tensors.some(({ role }) => role === 'buffer') && leftColumn('role', 'role', ({ role }) => role),
  ]);

/** A row for each tensor, under its box. */
export const diagramTable = ({ diagram: { root, shared } }: DiagramBlock): TableBlock =>
  tableOf(
    [root, ...shared]
      .flatMap(boxesFrom)
      .flatMap((box) => box.tensors.map((tensor) => ({ box, tensor }))),
    [
      leftColumn('box', 'box', ({ box }) => box.label),
      leftColumn('tensor', 'tensor', ({ tensor }) => tensor.name),
      leftColumn('shape', 'shape', ({ tensor }) => shapeOf(tensor)),
      right('count', 'count', ({ tensor }) => integerCell(tensor.count)),
      leftColumn('type', 'dtype', ({ tensor }) => tensor.dtype ?? ''),
      leftColumn('role', 'role', ({ tensor }) => tensor.role),
    ],
  );

const boxesFrom = (node: DiagramNode): DiagramNode[] => [node, ...node.children.flatMap(boxesFrom)];
