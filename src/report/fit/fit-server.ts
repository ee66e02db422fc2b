/** Server part of the report of `minimind fit`: throughput, latency and cost with many requests. */
import { formatInteger, formatSeconds, significant } from '../../base/text/units.js';
import { counted, present } from '../../base/text/words.js';
import type { Fits } from '../../estimate/fit/fits.js';
import type {
  Percentiles,
  ServerLoad,
  ServerRate,
  ServerThroughput,
} from '../../estimate/fit/serving/throughput/throughput.js';
import type { Block, Cell, Fact } from '../kit/report.js';
import {
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  right,
  strongCell,
  valueCell,
} from '../kit/report.js';
import type { BoundsRow } from './fit-bounds.js';
import { sameBounds } from './fit-bounds.js';

type Serving = NonNullable<Fits['serving']>;

/** Facts of the first screen. */
export function serverFacts({ setting, throughput }: Serving): Fact[] {
  if (throughput === null) return [];
  const { full, atSpeed, minSpeed, outputs } = throughput;
  return present([
    { name: 'runtime', text: runtimeText(throughput) },
    {
      name: 'server',
      text: `${counted(full.users, 'request')} of ${lengthsText(setting, outputs)} tokens: ${rateText(full)}`,
    },
    atSpeed === null
      ? { name: 'users', text: `no user has ${significant(minSpeed)} tokens/s` }
      : { name: 'users', text: usersText(throughput, atSpeed) },
    atSpeed?.cost && { name: 'price', text: costText(atSpeed, minSpeed) },
  ]);
}

/** `1,920 + 128`: the prompt, and the output. */
const lengthsText = ({ prompt }: Serving['setting'], outputs: readonly number[]): string =>
  `${formatInteger(prompt)} + ${outputs.map(formatInteger).join(' or ')}`;

const LAUNCHING = { graphs: 'CUDA graphs', eager: 'eager launches' } as const;

/** `vLLM (default), CUDA graphs; with eager launches 1 user has 820 tokens/s`. */
function runtimeText({
  runtimeTitle,
  isRuntimeChosen,
  launching,
  memoryShare,
  oneUser,
}: ServerThroughput): string {
  const other = launching === 'graphs' ? 'eager' : 'graphs';
  const contrast = oneUser
    ? `; with ${LAUNCHING[other]} 1 user has ${significant(oneUser[other].value)} tokens/s`
    : '';
  const memory = memoryShare === 1 ? '' : `, ${Math.round(100 * memoryShare)}% of the memory`;
  return `${runtimeTitle}${isRuntimeChosen ? '' : ' (default)'}${memory}, ${LAUNCHING[launching]}${contrast}`;
}

/** `160,718 tokens/s (107,000–241,000; limit 400,000), 84 requests/s`. */
const rateText = ({ tokensPerSecond, requestsPerSecond }: ServerLoad): string =>
  `${significant(tokensPerSecond.expected.value)} tokens/s ${rangeText(tokensPerSecond)}, ` +
  `${significant(requestsPerSecond.value)} requests/s`;

function rangeText({ lower, upper, limit }: ServerRate): string {
  const [low, high, most] = [lower, upper, limit].map(({ value }) => significant(value));
  return `(9 of 10: ${low}–${high}; limit ${most})`;
}

function usersText({ minSpeed, usersAtSpeed }: ServerThroughput, load: ServerLoad): string {
  const { lower, upper } = usersAtSpeed;
  const range = lower === upper ? '' : ` (${formatInteger(lower)}–${formatInteger(upper)})`;
  return (
    `${formatInteger(load.users)}${range} at ${significant(minSpeed)} tokens/s or more: ` +
    `first token ${percentilesText(load.firstToken)}`
  );
}

/** `0.8 s, 95% within 1.3 s`. */
const percentilesText = ({ median, p95 }: Percentiles): string =>
  `${formatSeconds(median.value)}, 95% within ${formatSeconds(p95.value)}`;

const costText = ({ cost }: ServerLoad, minSpeed: number): string =>
  cost === undefined
    ? ''
    : `${significant(cost.perMillionOutputTokens.value)} per 1M output tokens, ` +
      `${significant(cost.perMillionTokens.value)} per 1M tokens with prompts, at ${significant(minSpeed)} tokens/s each`;

const BATCHING = {
  chunked: 'continuous batching, prompts in chunks',
  whole: 'continuous batching, whole prompts in steps of their own',
  static: 'static batches',
} as const;

/** Tables of the long form. */
export function serverBlocks(
  throughput: ServerThroughput,
  { prompt, draft, prefixCache = 0 }: Serving['setting'],
): Block[] {
  const { full, atSpeed, minSpeed, batching, memoryShare, outputs, seed } = throughput;
  const details = present([
    `${throughput.runtimeTitle}: ${BATCHING[batching]}, ${Math.round(100 * memoryShare)}% of the memory`,
    `prompts of ${formatInteger(prompt)} tokens, outputs of ${outputs.map(formatInteger).join(', ')}`,
    prefixCache > 0 && `${Math.round(100 * prefixCache)}% of a prompt cached`,
    draft &&
      `${draft.name} drafts ${counted(draft.tokens, 'token')}, ${Math.round(100 * draft.acceptance)}% accepted`,
    `simulation with seed ${seed}`,
  ]);
  return [
    headingBlock('Server'),
    noteOf(`${details.join('; ')}.`),
    {
      kind: 'table',
      columns: [
        leftColumn('requests', 'requests'),
        right('at a time', 'users'),
        right('tokens/s', 'tokens_per_second'),
        right('9 of 10 from', 'lower_tokens_per_second'),
        right('to', 'upper_tokens_per_second'),
        right('limit', 'limit_tokens_per_second'),
        right('with prompts', 'total_tokens_per_second'),
        right('requests/s', 'requests_per_second'),
      ],
      rows: present([
        rateRow('as many as fit', full),
        atSpeed && rateRow(`at ${significant(minSpeed)} tokens/s`, atSpeed),
      ]),
    },
    {
      kind: 'table',
      columns: [
        leftColumn('requests', 'requests'),
        right('first token', 'first_token_median_seconds'),
        right('95%', 'first_token_p95_seconds'),
        right('per token', 'per_token_median_seconds'),
        right('95%', 'per_token_p95_seconds'),
      ],
      rows: present([
        timeRow('as many as fit', full),
        atSpeed && timeRow(`at ${significant(minSpeed)} tokens/s`, atSpeed),
      ]),
    },
    noteOf(`${throughput.runtimeTitle}: ${throughput.runtimeSource}.`),
  ];
}

function rateRow(title: string, load: ServerLoad): Cell[] {
  const { lower, expected, upper, limit } = load.tokensPerSecond;
  const rest = [expected, lower, upper, limit, load.totalTokensPerSecond, load.requestsPerSecond];
  return [
    strongCell(title),
    integerCell(load.users),
    ...rest.map(({ value }) => valueCell(value, significant)),
  ];
}

function timeRow(title: string, { firstToken, perToken }: ServerLoad): Cell[] {
  const times = [firstToken.median, firstToken.p95, perToken.median, perToken.p95];
  return [strongCell(title), ...times.map(({ value }) => valueCell(value, formatSeconds))];
}

/** Rows of the data of a report. */
export const serverRows = ({ full, atSpeed }: ServerThroughput): BoundsRow[] =>
  [
    { name: 'server', load: full },
    { name: 'server at the speed', load: atSpeed },
  ].flatMap(({ name, load }) =>
    load === null
      ? []
      : [
          { what: `${name}: requests`, unit: 'requests', bounds: sameBounds(load.users) },
          { what: `${name}: output`, unit: 'tokens/s', bounds: load.tokensPerSecond },
          {
            what: `${name}: p95 of the first token`,
            unit: 'seconds',
            bounds: sameBounds(load.firstToken.p95.value),
          },
          {
            what: `${name}: p95 per token`,
            unit: 'seconds',
            bounds: sameBounds(load.perToken.p95.value),
          },
        ],
  );
