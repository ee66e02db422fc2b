/** How evenly the experts of a mixture are used, as evaluated on a text. */
import { formatInteger, significant } from '../base/text/units.js';
import { counted } from '../base/text/words.js';
import { type LoadFacts, loadFacts, type RouterLoad } from '../language/evaluation/expert-load.js';
import type { HeatMapPicture } from './kit/pictures.js';
import type { Block, Fact } from './kit/report.js';
import { headingBlock, integerCell, leftColumn, right, tableOf, valueCell } from './kit/report.js';

interface WithExperts {
  readonly experts: readonly RouterLoad[] | null;
}

/** `2.31 × the even load for expert 17 of layers.3.mlp.gate; 4 of 512 unused`. */
export function expertFacts({ experts }: WithExperts): Fact[] {
  const loads = (experts ?? []).map(loadFacts);
  const [first, ...others] = loads;
  if (!first) return [];
  const worst = others.reduce((a, b) => (mostShare(b) > mostShare(a) ? b : a), first);
  const count = loads.reduce((sum, each) => sum + each.experts, 0);
  const unused = loads.reduce((sum, each) => sum + each.unused, 0);
  const most = `${significant(mostShare(worst))} × the even load for expert ${worst.most} of ${worst.router}`;
  return [
    {
      name: 'experts',
      text: `${most}; ${unused === 0 ? 'none' : formatInteger(unused)} of ${counted(count, 'expert')} unused`,
    },
  ];
}

const mostShare = ({ shares, most }: LoadFacts): number => shares[most] ?? 0;

export function expertTable({ experts }: WithExperts): Block[] {
  if (!experts) return [];
  return [
    headingBlock('Load of the experts, 1 when even'),
    tableOf(experts.map(loadFacts), [
      leftColumn('router', 'router', ({ router }) => ({ text: router })),
      right('experts', 'experts', (load) => integerCell(load.experts)),
      right('a token', 'per_token', ({ perToken }) => integerCell(perToken)),
      right('highest', 'highest', (load) => valueCell(mostShare(load), significant)),
      right('expert', 'highest_expert', ({ most }) => integerCell(most)),
      right('lowest', 'lowest', ({ shares, least }) => valueCell(shares[least] ?? 0, significant)),
      right('expert', 'lowest_expert', ({ least }) => integerCell(least)),
      right('unused', 'unused', ({ unused }) => integerCell(unused)),
      right('effective', 'effective', ({ effective }) => valueCell(effective, significant)),
    ]),
  ];
}

/** Layers and experts, with the load of each. */
export function expertMap({ experts }: WithExperts): HeatMapPicture[] {
  if (!experts) return [];
  const loads = experts.map(loadFacts);
  const columns = Math.max(...loads.map((each) => each.experts));
  return [
    {
      kind: 'heat map',
      title: 'Load of each expert, 1 when even',
      columns: Array.from({ length: columns }, (_, expert) => `expert ${expert}`),
      rows: loads.map(({ router, shares }) => ({
        label: router,
        values: Array.from({ length: columns }, (_, expert) => shares[expert] ?? null),
      })),
    },
  ];
}
