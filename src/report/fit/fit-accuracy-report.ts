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
        right('inside', 'inside'),
        right('width', 'width'),
        right('held out', 'heldOutMedian'),
        right('rule', 'rule'),
        right('fitllm', 'fitllm'),
      ],
      rows: groups.map(groupRow),
    },
    noteOf(
      'median: estimate divided by published figure. inside: share of the published figures in the shown range. width: upper ' +
        'end of that range divided by its lower end. held out: median with constants from the other half of the runs. ' +
        'rule, fitllm: medians of a rule of thumb and of the npm package fitllm. More in docs/fit-accuracy.md.',
    ),
  ],
});

const twoDigits = (value: number) => value.toFixed(2);
const percent = (value: number) => `${Math.round(100 * value)}%`;

function groupRow({
  group,
  runs,
  median,
  inside,
  width,
  heldOutMedian,
  rule,
  fitllm,
}: AccuracyOfGroup): Cell[] {
  return [
    { text: group },
    valueCell(runs, String),
    valueCell(median, twoDigits),
    valueCell(inside, percent),
    valueCell(width, twoDigits),
    valueCell(heldOutMedian, twoDigits),
    valueCell(rule, twoDigits),
    valueCell(fitllm, twoDigits),
  ];
}
