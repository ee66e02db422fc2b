/** Server part of the report of `minimind fit`: throughput, latency and cost with many requests. */
import { formatInteger, formatSeconds, significant } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { Fits } from '../../estimate/fit/fits.js';
import type { UsersSpeed } from '../../estimate/fit/serving/serving.js';
import type {
  ServerLoad,
  ServerThroughput,
} from '../../estimate/fit/serving/throughput/throughput.js';
import type { Block, Cell, Fact, TableBlock } from '../kit/report.js';
import {
  headingBlock,
  integerCell,
  leftColumn,
  NOTHING,
  noteOf,
  right,
  strongCell,
  tableOf,
  valueCell,
} from '../kit/report.js';
import type { BoundsRow } from './fit-bounds.js';
import { bytesText, sameBounds } from './fit-bounds.js';

type Serving = NonNullable<Fits['serving']>;

/** Facts of the first screen. */
export function serverFacts({ setting: { load }, throughput }: Serving): Fact[] {
  if (throughput === null) return [];
  const { atSpeed, minSpeed } = throughput;
  return present([
    { name: 'runtime', text: runtimeText(throughput) },
    throughput.disaggregated && { name: 'prefill', text: apartText(throughput.disaggregated) },
    atSpeed === null && { name: 'users', text: `no user has ${significant(minSpeed)} tokens/s` },
    // The cost of a load is that of its own GPUs.
    !load && atSpeed?.cost && { name: 'price', text: costText(atSpeed) },
  ]);
}

/** `2 servers of 4 GPUs read prompts, 6 decode; a cache of 268 MB per GPU moves in 7.0 ms (InfiniBand)`. */
function apartText({
  prefill,
  decoding,
  gpus,
  transfer: { bytes, seconds, link },
}: NonNullable<ServerThroughput['disaggregated']>): string {
  const each = gpus === 1 ? '' : ' per GPU';
  const size = gpus === 1 ? '' : ` of ${formatInteger(gpus)} GPUs`;
  const reads = prefill === 1 ? 'reads' : 'read';
  const decodes = decoding === 1 ? 'decodes' : 'decode';
  return (
    `${counted(prefill, 'server')}${size} ${reads} prompts, ${formatInteger(decoding)} ${decodes}; ` +
    `a cache of ${bytesText(bytes.value)}${each} moves in ${formatSeconds(seconds.value)} (${link})`
  );
}

const LAUNCHING = { graphs: 'CUDA graphs', eager: 'eager' } as const;

/** `vLLM (default), 90% of memory, CUDA graphs (eager: 820 tokens/s)`. */
function runtimeText({
  runtimeTitle,
  isRuntimeChosen,
  launching,
  memoryShare,
  oneUser,
}: ServerThroughput): string {
  const other = launching === 'graphs' ? 'eager' : 'graphs';
  const contrast = oneUser
    ? ` (${LAUNCHING[other]}: ${significant(oneUser[other].value)} tokens/s)`
    : '';
  const memory = memoryShare === 1 ? '' : `, ${Math.round(100 * memoryShare)}% of memory`;
  return `${runtimeTitle}${isRuntimeChosen ? '' : ' (default)'}${memory}, ${LAUNCHING[launching]}${contrast}`;
}

const costText = ({ cost }: ServerLoad): string =>
  cost === undefined
    ? ''
    : `${significant(cost.perMillionOutputTokens.value)} per 1M output tokens, ` +
      `${significant(cost.perMillionTokens.value)} per 1M tokens with prompts`;

/** Speeds by users: those of the question, those that have the speed, and as many as the server takes. */
export function usersTable({ setting, fit, users, throughput }: Serving): TableBlock | null {
  const { decode, prefill } = fit;
  if (fit.withoutRoom !== null || decode === null || prefill === null) return null;
  const { speed, asked, replicas } = users;
  const { published, tokensPerSecond } = decode;
  // One user has the speed of one replica; a batch is that of each replica.
  const each = setting.batch === 1 ? 1 : replicas;
  const total = each * tokensPerSecond.expected.value;
  const first: UsersRow =
    asked !== null && speed !== null
      ? askedRow(speed, published !== null)
      : {
          users: each * setting.batch,
          each: total / (each * setting.batch),
          tokensPerSecond: total,
          range: published && { lower: each * published.lower, upper: each * published.upper },
          limit: each * tokensPerSecond.upper.value,
          // Unknown for a batch.
          firstToken: setting.batch === 1 ? (throughput?.firstTokenAlone.value ?? null) : null,
        };
  const { full = null, atSpeed = null } = throughput ?? {};
  const loads = present([atSpeed, full?.users !== atSpeed?.users && full]).map(usersRow);
  const others = asked === null ? loads : loads.filter(({ users: count }) => count !== first.users);
  const rows = [first, ...others].sort((a, b) => a.users - b.users);
  return { ...speedsOf(rows, true), narrower: speedsOf(rows, false) };
}

/** Speed of a user after the first token; if users wait for a place, with their wait. */
export const userSpeed = ({ afterFirstToken, each }: UsersSpeed): number =>
  (afterFirstToken ?? each.expected).value;

/** @param isPublished Whether the speed is compared with published runs. */
function askedRow(speed: UsersSpeed, isPublished: boolean): UsersRow {
  const { users, total, firstToken } = speed;
  return {
    users,
    each: userSpeed(speed),
    tokensPerSecond: total.expected.value,
    range: isPublished ? { lower: total.lower.value, upper: total.upper.value } : null,
    limit: total.limit.value,
    firstToken: firstToken.median.value,
    firstTokenP95: firstToken.p95.value,
  };
}

/** @param isWide With the 95th percentile of the time to the first token. */
const speedsOf = (rows: readonly UsersRow[], isWide: boolean): TableBlock =>
  tableOf(rows, [
    right('users', 'users', (row) => integerCell(row.users)),
    right('tokens/s each', 'user_tokens_per_second', (row) => valueCell(row.each, significant)),
    right('total', 'tokens_per_second', (row) => valueCell(row.tokensPerSecond, significant)),
    right('9 of 10', 'range_tokens_per_second', (row) =>
      row.range === null ? NOTHING : { text: limitedRange(row.range, row.limit) },
    ),
    right('limit', 'limit_tokens_per_second', (row) => valueCell(row.limit, significant)),
    right('first token', 'first_token_seconds', (row) =>
      row.firstToken === null ? NOTHING : valueCell(row.firstToken, formatSeconds),
    ),
    isWide &&
      right('95%', 'first_token_p95_seconds', (row: UsersRow) =>
        row.firstTokenP95 === undefined ? NOTHING : valueCell(row.firstTokenP95, formatSeconds),
      ),
  ]);

/** Output tokens per second of all users, and seconds to the first token. */
interface UsersRow {
  readonly users: number;
  /** Speed of a user; of a simulated server after the first token, as in the search for users at a speed. */
  readonly each: number;
  readonly tokensPerSecond: number;
  readonly range: { readonly lower: number; readonly upper: number } | null;
  readonly limit: number;
  readonly firstToken: number | null;
  readonly firstTokenP95?: number;
}

const usersRow = ({
  users,
  tokensPerSecond,
  userTokensPerSecond,
  firstToken,
}: ServerLoad): UsersRow => ({
  users,
  each: userTokensPerSecond.value,
  tokensPerSecond: tokensPerSecond.expected.value,
  range: { lower: tokensPerSecond.lower.value, upper: tokensPerSecond.upper.value },
  limit: tokensPerSecond.limit.value,
  firstToken: firstToken.median.value,
  firstTokenP95: firstToken.p95.value,
});

const limitedRange = (
  { lower, upper }: { readonly lower: number; readonly upper: number },
  limit: number,
): string => `${significant(lower)}–${significant(Math.min(upper, limit))}`;

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
  const { disaggregated } = throughput;
  const steps = disaggregated ? 'continuous batching without prompts' : BATCHING[batching];
  const details = present([
    `${throughput.runtimeTitle}: ${steps}, ${Math.round(100 * memoryShare)}% of the memory`,
    `prompts of ${formatInteger(prompt)} tokens, outputs of ${outputs.map(formatInteger).join(', ')}`,
    prefixCache > 0 && `${Math.round(100 * prefixCache)}% of a prompt cached`,
    disaggregated && apartText(disaggregated),
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
export const serverRows = ({ full, atSpeed, disaggregated }: ServerThroughput): BoundsRow[] => [
  ...(disaggregated
    ? [
        {
          what: 'server: move of a cache',
          unit: 'seconds',
          bounds: sameBounds(disaggregated.transfer.seconds.value),
        },
      ]
    : []),
  ...[
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
  ),
];
