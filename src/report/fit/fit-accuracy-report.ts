/** Report of `fit --accuracy`: estimates compared with published runs. */

import type { AccuracyOfGroup, FitAccuracy } from '../../estimate/fit/accuracy.js';
import { type Cell, leftColumn, noteOf, type Report, right, valueCell } from '../kit/report.js';

export const accuracyReport = ({ groups }: FitAccuracy): Report => ({
  blocks: [
    {
      kind: 'table',
      columns: [
        leftColumn('published runs', 'group'),
        right('runs', 'runs'),
        right('median', 'median'),
        right('least', 'least'),
        right('most', 'most'),
        right('inside', 'inside'),
        right('width', 'width'),
        right('rule', 'rule'),
      ],
      rows: groups.map(groupRow),
    },
    noteOf(
      'median, least, most: estimate divided by published figure. inside: share of the published figures in the shown ' +
        'range, and width: its upper end divided by its lower end. rule: median of a rule of thumb on the same runs.',
    ),
  ],
});

const twoDigits = (value: number) => value.toFixed(2);
const percent = (value: number) => `${Math.round(100 * value)}%`;

function groupRow({
  group,
  runs,
  median,
  least,
  most,
  inside,
  width,
  rule,
}: AccuracyOfGroup): Cell[] {
  return [
    { text: group },
    valueCell(runs, String),
    ...[median, least, most].map((value) => valueCell(value, twoDigits)),
    valueCell(inside, percent),
    valueCell(width, twoDigits),
    valueCell(rule, twoDigits),
  ];
}
