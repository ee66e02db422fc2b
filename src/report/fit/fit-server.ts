/** Server part of the report of `minimind fit`: throughput, latency and cost with many requests. */
import { setting as named } from '../../base/text/setting.js';
import { formatInteger, formatSeconds, significant } from '../../base/text/units.js';
import { counted, modelName } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { Fits } from '../../estimate/fit/fits.js';
import type { UsersSpeed } from '../../estimate/fit/serving/serving.js';
import type { DraftSetting } from '../../estimate/fit/serving/serving-work.js';
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
export function serverFacts(serving: Serving): Fact[] {
  const { setting, throughput } = serving;
  if (throughput === null) return [];
  const { load } = setting;
  const { atSpeed, minSpeed } = throughput;
  const requests = requestsText(setting, throughput);
  return present([
    { name: 'runtime', text: runtimeText(throughput, serving) },
    requests !== '' && { name: 'requests', text: requests },
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
  limitedBy,
}: NonNullable<ServerThroughput['disaggregated']>): string {
  const each = gpus === 1 ? '' : ' per GPU';
  const size = gpus === 1 ? '' : ` of ${formatInteger(gpus)} GPUs`;
  const reads = prefill === 1 ? 'reads' : 'read';
  const decodes = decoding === 1 ? 'decodes' : 'decode';
  return (
    `${counted(prefill, 'server')}${size} ${reads} prompts, ${formatInteger(decoding)} ${decodes}; ` +
    `a cache of ${bytesText(bytes.value)}${each} moves in ${formatSeconds(seconds.value)} (${link})` +
    (limitedBy === 'prefill' ? `; reading prompts is the limit: raise ${named('prefillGpus')}` : '')
  );
}

/** `vLLM (default), 90% of memory, CUDA graphs (eager: 820 tokens/s)`. */
function runtimeText(throughput: ServerThroughput, serving: Serving): string {
  const { runtimeTitle, isRuntimeChosen, launching, graphs, oneUser, batching, usual } = throughput;
  const { draft } = serving.setting;
  const names = { graphs, eager: 'eager' };
  const other = launching === 'graphs' ? 'eager' : 'graphs';
  // Both are the speed of the model alone.
  const isContrast = oneUser !== null && graphs !== null && draft === undefined;
  const contrast = isContrast
    ? ` (${names[other]}: ${significant(oneUser[other].value)} tokens/s)`
    : '';
  const launched = names[launching];
  return present([
    `${runtimeTitle}${isRuntimeChosen ? '' : ' (default)'}`,
    memoryText(throughput, serving),
    batching !== usual.batching && BATCHING[batching],
    launched !== null && `${launched}${contrast}`,
  ]).join(', ');
}

/** `90% of memory (all 20 users at a time: --gpu-memory-utilization 0.97)`; empty where a program takes all by default. */
function memoryText(
  { usual: { memoryShare: usual }, memoryShare }: ServerThroughput,
  { setting, fit, users }: Serving,
): string | false {
  const of = memoryShare < 1 || memoryShare > usual ? `${percentOf(memoryShare)} of memory` : '';
  const flag = named('gpuMemoryUtilization', fit.memoryShare);
  if (fit.memoryShare > memoryShare) {
    return `${of} (all ${counted(users.asked ?? setting.batch, 'user')} at a time: ${flag})`;
  }
  const isRaised = memoryShare > usual && !setting.runtime?.isMemoryChosen;
  return of !== '' && (isRaised ? `${of} (${flag}, default ${usual})` : of);
}

const percentOf = (share: number): string => `${Math.round(100 * share)}%`;

/** `50% of a prompt cached; qwen3-0.6b drafts 5 tokens, 70% accepted: 2.94 tokens a step`. */
function requestsText(
  { draft, prefixCache = 0 }: Serving['setting'],
  { tokensPerStep }: ServerThroughput,
): string {
  return present([
    prefixCache > 0 && `${percentOf(prefixCache)} of a prompt cached`,
    draft && `${draftText(draft)}: ${significant(tokensPerStep)} tokens a step`,
  ]).join('; ');
}

const draftText = ({ name, tokens, acceptance }: DraftSetting): string =>
  `${modelName(name)} drafts ${counted(tokens, 'token')}, ${percentOf(acceptance)} accepted`;

const costText = ({ cost }: ServerLoad): string =>
  cost === undefined
    ? ''
    : `${significant(cost.perMillionOutputTokens.value)} per 1M output tokens, ` +
      `${significant(cost.perMillionTokens.value)} per 1M tokens with prompts`;

/** Speeds by users: those of the question, those that have the speed, and as many as the server takes. */
export function usersTable(serving: Serving): TableBlock | null {
  const rows = usersRows(serving);
  if (rows.length === 0) return null;
  return { ...speedsOf(rows, true), narrower: speedsOf(rows, false) };
}

/** Users of the question, or else one, with their speed; undefined without a speed. */
export const firstUsers = (serving: Serving): Pick<UsersRow, 'users' | 'each'> | undefined =>
  usersRows(serving)[0];

/** Why speed times users is more than the total, where it clearly is: prompts, and waits for the first token. */
export function totalsNote(serving: Serving): Block[] {
  const rows = usersRows(serving);
  const isLess = (row: UsersRow) => row.tokensPerSecond < CLEARLY_LESS * row.users * row.each;
  if (!rows.some(isLess)) return [];
  const alone = rows.find(({ isDecoding }) => isDecoding);
  const without = alone ? `, of ${counted(alone.users, 'user')} without` : '';
  return [noteOf(`each: after the first token; total: with prompts and waits${without}.`)];
}

const CLEARLY_LESS = 0.9;

/** Rows of the table, by users; empty without a speed. */
function usersRows({ setting, fit, users, throughput }: Serving): readonly UsersRow[] {
  const { decode, prefill } = fit;
  if (fit.withoutRoom !== null || decode === null || prefill === null) return [];
  const { speed, asked, replicas } = users;
  const { published, tokensPerSecond } = decode;
  // One user has the speed of one replica; a batch is that of each replica.
  const each = setting.batch === 1 ? 1 : replicas;
  const total = each * tokensPerSecond.expected.value;
  const first: UsersRow =
    asked !== null && speed !== null
      ? askedRow(speed, published !== null)
      : throughput && setting.draft && setting.batch === 1
        ? usersRow(throughput.alone)
        : {
            isDecoding: true,
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
  // A number of users has one row.
  const others = loads.filter(({ users: count }) => count !== first.users);
  return [first, ...others].sort((a, b) => a.users - b.users);
}

/** @param isPublished Whether the speed is compared with published runs. */
function askedRow(speed: UsersSpeed, isPublished: boolean): UsersRow {
  const { users, total, firstToken } = speed;
  return {
    users,
    each: speed.ofUser.value,
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
  /** Whether it counts decoding alone. */
  readonly isDecoding?: boolean;
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
    draft && draftText(draft),
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
