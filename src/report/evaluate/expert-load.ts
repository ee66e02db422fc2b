/** How evenly the experts of a mixture are used, as evaluated on a text. */
import { formatInteger, significant } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { sumOf } from '../../base/values.js';
import type { RouterLoad } from '../../language/evaluation/expert-load.js';
import type { HeatMapPicture } from '../kit/pictures.js';
import type { Block, Fact } from '../kit/report.js';
import { headingBlock, integerCell, leftColumn, right, tableOf, valueCell } from '../kit/report.js';

interface WithExperts {
  readonly experts: readonly RouterLoad[] | null;
}

/** `2.31 × the even load for expert 17 of layers.3.mlp.gate; 4 of 512 unused`. */
export function expertFacts({ experts }: WithExperts): Fact[] {
  const [first, ...others] = experts ?? [];
  if (!experts || !first) return [];
  const worst = others.reduce((a, b) => (highestLoad(b) > highestLoad(a) ? b : a), first);
  const count = sumOf(experts, ({ sent }) => sent.length);
  const unused = sumOf(experts, (each) => each.unused);
  const most = `${significant(highestLoad(worst))} × the even load for expert ${worst.highest} of ${worst.router}`;
  return [
    {
      name: 'experts',
      text: `${most}; ${unused === 0 ? 'none' : formatInteger(unused)} of ${counted(count, 'expert')} unused`,
    },
  ];
}

/** Tokens of an expert as a multiple of the even number. */
const loadOf = ({ sent, even }: RouterLoad, expert: number): number => (sent[expert] ?? 0) / even;

const highestLoad = (load: RouterLoad): number => loadOf(load, load.highest);

export function expertTable({ experts }: WithExperts): Block[] {
  if (!experts) return [];
  return [
    headingBlock('Load of the experts, 1 when even'),
    tableOf(experts, [
      leftColumn('router', 'router', ({ router }) => ({ text: router })),
      right('experts', 'experts', ({ sent }) => integerCell(sent.length)),
      right('a token', 'per_token', ({ perToken }) => integerCell(perToken)),
      right('highest', 'highest', (load) => valueCell(highestLoad(load), significant)),
      right('expert', 'highest_expert', ({ highest }) => integerCell(highest)),
      right('lowest', 'lowest', (load) => valueCell(loadOf(load, load.lowest), significant)),
      right('expert', 'lowest_expert', ({ lowest }) => integerCell(lowest)),
      right('unused', 'unused', ({ unused }) => integerCell(unused)),
      right('effective', 'effective', ({ effective }) => valueCell(effective, significant)),
    ]),
  ];
}

/** Layers and experts, with the load of each. */
export function expertMap({ experts }: WithExperts): HeatMapPicture[] {
  if (!experts) return [];
  const columns = Array.from(
    { length: Math.max(...experts.map(({ sent }) => sent.length)) },
    (_, expert) => expert,
  );
  return [
    {
      kind: 'heat map',
      title: 'Load of each expert, 1 when even',
      columns: columns.map((expert) => `expert ${expert}`),
      rows: experts.map((load) => ({
        label: load.router,
        values: columns.map((expert) => (expert < load.sent.length ? loadOf(load, expert) : null)),
      })),
    },
  ];
}
