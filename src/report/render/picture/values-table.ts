/** The values of a picture as a table, for those who cannot see it. */
import { diagramTable } from '../../draw/diagram-tables.js';
import type {
  BarsPicture,
  HeatMapPicture,
  LinePlotBlock,
  Picture,
  PictureUnit,
  TreemapNode,
  TreemapPicture,
} from '../../kit/pictures.js';
import {
  type Cell,
  leftColumn,
  MAX_ROWS,
  right,
  type TableBlock,
  tableOf,
} from '../../kit/report.js';
import { asLinePlot } from './chart.js';
import { valueText } from './units.js';

export function valuesTable(picture: Picture): TableBlock {
  switch (picture.kind) {
    case 'plot':
      return curvesTable(asLinePlot(picture));
    case 'line plot':
      return curvesTable(picture);
    case 'bars':
      return barsTable(picture);
    case 'treemap':
      return treemapTable(picture);
    case 'heat map':
      return heatMapTable(picture);
    case 'diagram':
      return diagramTable(picture);
  }
}

const cell = (value: number | null | undefined, unit?: PictureUnit): Cell =>
  value === null || value === undefined ? { text: '' } : { text: valueText(value, unit), value };

/** A row for each point. Long curves are thinned out evenly; their JSON is complete. */
function curvesTable({ x, y, curves, levels = [] }: LinePlotBlock): TableBlock {
  const count = curves.reduce((sum, { points }) => sum + points.length, 0);
  const every = Math.ceil(count / MAX_ROWS);
  const rows = curves.flatMap(({ label, points, names }) =>
    points
      .map((point, index) => ({ label: names?.[index] ?? label, point, index }))
      .filter(({ index }) => index % every === 0 || index === points.length - 1),
  );
  const levelRows = levels.map(({ label, value }): Cell[] => [
    { text: label },
    { text: '' },
    cell(value, y.unit),
  ]);
  return tableOf(
    rows,
    [
      leftColumn('curve', 'curve', ({ label }) => label),
      right(x.title ?? 'x', 'x', ({ point }) => cell(point[0], x.unit)),
      right(y.title ?? 'y', 'y', ({ point }) => cell(point[1], y.unit)),
    ],
    levelRows,
  );
}

function barsTable({ bars, levels, unit }: BarsPicture): TableBlock {
  const hasRanges = bars.some(({ range }) => range !== undefined);
  return tableOf(
    bars,
    [
      leftColumn('name', 'name', ({ label }) => label),
      hasRanges && right('lower', 'lower', ({ range }) => cell(range?.[0], unit)),
      right('value', 'value', ({ value }) => cell(value, unit)),
      hasRanges && right('upper', 'upper', ({ range }) => cell(range?.[1], unit)),
    ],
    levels.map(({ label, value }): Cell[] => [
      { text: label },
      ...(hasRanges ? [{ text: '' }] : []),
      cell(value, unit),
      ...(hasRanges ? [{ text: '' }] : []),
    ]),
  );
}

function treemapTable({ root, unit }: TreemapPicture): TableBlock {
  const rows: { readonly label: string; readonly value: number }[] = [];
  const visit = (node: TreemapNode, path: readonly string[]): number => {
    const label = path.join(' › ');
    const at = rows.length;
    const value = node.children
      ? node.children.reduce((sum, child) => sum + visit(child, [...path, child.label]), 0)
      : (node.value ?? 0);
    rows.splice(at, 0, { label: label || root.label, value });
    return value;
  };
  visit(root, []);
  return tableOf(rows, [
    leftColumn('part', 'part', ({ label }) => label),
    right('value', 'value', ({ value }) => cell(value, unit)),
  ]);
}

const heatMapTable = ({ rows, columns, unit }: HeatMapPicture): TableBlock =>
  tableOf(rows, [
    leftColumn('row', 'row', ({ label }) => label),
    ...columns.map((name, index) =>
      right(name, name, ({ values }: HeatMapPicture['rows'][number]) => cell(values[index], unit)),
    ),
  ]);
