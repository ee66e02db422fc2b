/** What `minimind profile` prints: a block of tables for each budget. */
import type { HeadSpan } from '../architecture/layer.js';
import type { Figure } from '../budget/figure.js';
import type { BlockBudget, TensorEntry } from '../budget/inventory.js';
import type { LimitCheck } from '../budget/limits.js';
import type { ModelProfile } from '../budget/profile.js';
import type { PublishedReport } from '../budget/published.js';
import type { Origin, ResolvedSetting } from '../budget/setting.js';
import { bar } from './bar.js';
import type { Block, Cell, Column, Report, TableBlock, Tone } from './report.js';
import {
  formatBinaryBytes,
  formatBytes,
  formatCount,
  formatFlops,
  formatInteger,
  formatMacs,
  formatShare,
} from './units.js';

/** Everything that the command found out. */
export interface ProfileResult extends ModelProfile {
  readonly file: string;
  readonly family: string;
  readonly setting: ResolvedSetting;
  readonly checks: readonly LimitCheck[];
  readonly published?: PublishedReport;
  readonly layers?: readonly BlockBudget[];
  readonly tensors?: readonly TensorEntry[];
}

/** How long the bar of the largest component is, in columns. */
const BAR_WIDTH = 24;
/** Of everything together, in the narrower table of FLOPs. */
const FLOPS_BAR_WIDTH = 16;

/** @param flat Whether the reader is a program, for which a tree of names is only in the way. */
export function profileReport(
  result: ProfileResult,
  { explain, flat }: { readonly explain: boolean; readonly flat: boolean },
): Report {
  return {
    blocks: [
      heading(`${result.family} model of ${result.file}`),
      ...settingNotes(result.setting),
      ...parametersBlocks(result),
      ...inferenceBlocks(result),
      ...flopsBlocks(result),
      ...trainingBlocks(result),
      ...(result.layers ? layersBlocks(result.layers) : []),
      ...(result.tensors ? tensorsBlocks(result.tensors, flat) : []),
      ...(explain ? explanationBlocks(result) : []),
      ...(result.published ? publishedBlocks(result.published) : []),
      ...(result.checks.length > 0 ? checksBlocks(result.checks) : []),
    ],
  };
}

const heading = (text: string): Block => ({ kind: 'heading', text });
const note = (text: string): Block => ({ kind: 'note', text, tone: 'dim' });
const left = (title: string, key: string, wrap = false): Column => ({ title, key, wrap });
const right = (title: string, key: string): Column => ({ title, key, align: 'right' });

const strong = (text: string): Cell => ({ text, tone: 'strong' });

/** CSV holds integers beyond 2^53 − 1 as text, every digit. */
const exactValue = (value: number | bigint) => (typeof value === 'bigint' ? String(value) : value);

const bytesCell = ({ value }: Pick<Figure, 'value'>): Cell => ({
  text: formatBytes(value),
  value: exactValue(value),
});
const binaryCell = ({ value }: Pick<Figure, 'value'>): Cell => ({
  text: formatBinaryBytes(value),
  value: Number(value) / 2 ** 30,
});
const integerCell = (value: number | bigint): Cell => ({
  text: formatInteger(value),
  value: exactValue(value),
});
const flopsCell = (value: number | bigint): Cell => ({
  text: formatFlops(value),
  value: exactValue(value),
});
const shareCell = (part: number | bigint, whole: number | bigint): Cell => ({
  text: formatShare(part, whole),
  value: Number(part) / Number(whole),
});

const ORIGINS = {
  flag: '',
  file: ' (from the file)',
  default: ' (default)',
  longest: ' (default: all that the model takes)',
} as const satisfies Record<Origin, string>;

function settingNotes(setting: ResolvedSetting): Block[] {
  const { inference, training, origins, beyondOneDevice } = setting;
  const from = (origin: Origin) => ORIGINS[origin];
  const precision = training.precision === 'mixed' ? 'mixed precision' : 'float32';
  return [
    note(
      `Inference: ${formatInteger(inference.batch)} × ${formatInteger(inference.context)} tokens` +
        `${from(origins.context)}, ${inference.dtype}.`,
    ),
    note(
      `Training: ${formatInteger(training.batch)}${from(origins.trainingBatch)} × ${formatInteger(training.context)} ` +
        `tokens, ${precision}${from(origins.precision)}, ${training.optimizer}, ` +
        `recomputation ${training.recompute}${from(origins.recompute)}.`,
    ),
    ...(beyondOneDevice.length > 0
      ? [
          note(
            `The file asks for ${beyondOneDevice.join(', ')}; one device without it is counted here.`,
          ),
        ]
      : []),
  ];
}

function parametersBlocks({ parameters, bytes }: ProfileResult): Block[] {
  const total = parameters.total.value;
  const largest = parameters.components.reduce(
    (most, { parameters: { value } }) => (value > most ? value : most),
    0 as number | bigint,
  );
  const rows = parameters.components.map(({ parameters: { label, value } }): Cell[] => [
    { text: label },
    integerCell(value),
    shareCell(value, total),
    { text: bar(Number(value) / Number(largest), BAR_WIDTH), value: '' },
  ]);
  const summary = [
    parameters.trainable,
    parameters.embedding,
    parameters.nonEmbedding,
    parameters.buffers,
  ].map(({ label, value }): Cell[] => [
    { text: label, tone: 'dim' },
    integerCell(value),
    label === 'buffers' ? { text: '' } : shareCell(value, total),
    { text: label === 'buffers' ? 'stored, but no parameters' : '', value: '', tone: 'dim' },
  ]);
  return [
    heading(
      total < 1e6 ? `Parameters: ${formatInteger(total)}` : `Parameters: ${formatCount(total)}`,
    ),
    {
      kind: 'table',
      columns: [
        left('component', 'component'),
        right('parameters', 'parameters'),
        right('share', 'share'),
        left('', 'bar'),
      ],
      rows: [
        ...rows,
        [
          strong('in all'),
          { ...integerCell(total), tone: 'strong' },
          shareCell(total, total),
          { text: '' },
        ],
        ...summary,
      ],
    },
    ...(parameters.components.some(({ component }) => component === 'head')
      ? []
      : [note('The head is tied: it reads the embedding, and has no parameters of its own.')]),
    {
      kind: 'table',
      columns: [
        left('all weights in', 'dtype'),
        right('bytes', 'bytes'),
        right('decimal', 'gigabytes'),
        right('binary', 'gibibytes'),
      ],
      rows: bytes.map(({ dtype, bytes: figure }) => [
        { text: dtype },
        integerCell(figure.value),
        { text: formatBytes(figure.value), value: Number(figure.value) / 1e9 },
        binaryCell(figure),
      ]),
    },
  ];
}

/** A table of byte figures and of their sum. */
function bytesTable(figures: readonly Figure[], sum: Figure): TableBlock {
  const row = (label: string, figure: Figure, tone: Tone): Cell[] => [
    { text: label, tone },
    { ...bytesCell(figure), tone },
    binaryCell(figure),
    shareCell(figure.value, sum.value),
  ];
  return {
    kind: 'table',
    columns: [
      left('what', 'what'),
      right('memory', 'bytes'),
      right('binary', 'gibibytes'),
      right('share', 'share'),
    ],
    rows: [
      ...figures.map((figure) => row(figure.label, figure, 'plain')),
      row('in all', sum, 'strong'),
    ],
  };
}

function inferenceBlocks({ inference }: ProfileResult): Block[] {
  const { state, weights, buffers, total } = inference;
  return [
    heading(`Inference memory: ${formatBytes(total.value)}`),
    bytesTable(
      [weights, buffers, state.keyValueCache, state.mambaState, state.convolutionState],
      total,
    ),
    note(
      `State in all: ${formatBytes(state.total.value)}. A token of one sequence adds ` +
        `${formatBytes(state.keyValuePerToken.value)} of keys and values, ` +
        `${formatBytes(state.keyValuePerTokenPastWindows.value)} once every window is full; the other states do not grow.`,
    ),
    note(
      'Decoding slides the windows: a local head keeps window // 2 + 1 keys. (A full forward pass of at most ' +
        'window_size tokens would see all of them.)',
    ),
  ];
}

function flopsBlocks({ forwardFlops, trainingFlops, setting }: ProfileResult): Block[] {
  const { parts, total, macs } = forwardFlops;
  const { causal, batch, context } = setting.inference;
  const tokens = (sequences: number) =>
    `${formatInteger(sequences)} × ${formatInteger(context)} tokens`;
  return [
    heading(`Forward pass: ${formatFlops(total.value)}`),
    {
      kind: 'table',
      columns: [
        left('what', 'what'),
        right('forward', 'forward_flops'),
        right('share', 'share'),
        right('training', 'training_flops'),
        left('', 'bar'),
      ],
      rows: [
        ...parts.map(({ flops }, index): Cell[] => [
          { text: flops.label },
          flopsCell(flops.value),
          shareCell(flops.value, total.value),
          flopsCell(trainingFlops.parts[index]?.flops.value ?? 0),
          { text: bar(Number(flops.value) / Number(total.value), FLOPS_BAR_WIDTH), value: '' },
        ]),
        [
          strong('in all'),
          { ...flopsCell(total.value), tone: 'strong' },
          shareCell(total.value, total.value),
          { ...flopsCell(trainingFlops.total.value), tone: 'strong' },
          { text: '' },
        ],
      ],
    },
    note(
      `A forward pass over ${tokens(batch)}; a training step over ${tokens(setting.training.batch)}. ` +
        `The matrix products of the forward pass are ${formatMacs(macs.value)} (1 MAC is 2 FLOP).`,
    ),
    note(
      causal
        ? 'Attention counts the pairs that the mask lets through, windows included.'
        : 'Attention counts the whole square of positions; --causal counts what the mask lets through.',
    ),
  ];
}

function trainingBlocks({ training, setting }: ProfileResult): Block[] {
  const { weights, gradients, optimizer, buffers, activations, total } = training;
  return [
    heading(`Training memory on one device: ${formatBytes(total.value)}`),
    bytesTable(
      [weights, gradients, optimizer, buffers, ...activations.parts.map(({ bytes }) => bytes)],
      total,
    ),
    note(
      `Activations with recomputation ${setting.training.recompute}: selective drops attention scores and scan ` +
        'states, as fused kernels do, and full all but the inputs of the blocks and one block at a time. ' +
        'What dropout keeps, workspaces and fragmentation come on top.',
    ),
  ];
}

const spanText = ({ heads, window }: HeadSpan) =>
  window === undefined ? `${heads} global` : `${heads} local (${formatInteger(window)})`;

function layersBlocks(layers: readonly BlockBudget[]): Block[] {
  return [
    heading('Layers'),
    {
      kind: 'table',
      columns: [
        left('layer', 'layer'),
        right('parameters', 'parameters'),
        right('state', 'state_bytes'),
        right('forward', 'forward_flops'),
        left('heads', 'heads', true),
      ],
      rows: layers.map(({ name, parameters, state, forwardFlops, spans }) => [
        { text: name },
        integerCell(parameters.value),
        bytesCell(state),
        flopsCell(forwardFlops.value),
        { text: spans.map(spanText).join(', ') },
      ]),
    },
  ];
}

/** Parameters as a tree of their names; buffers in a list of their own. */
function tensorsBlocks(tensors: readonly TensorEntry[], flat: boolean): Block[] {
  const columns = [
    left('tensor', 'tensor'),
    right('shape', 'shape'),
    right('values', 'values'),
    left('also named', 'aliases', true),
  ];
  const cells = ({ name, shape, elements, aliases }: TensorEntry, text: string): Cell[] => [
    { text, value: name },
    { text: `[${shape.join(', ')}]` },
    integerCell(elements),
    { text: aliasText(aliases), value: aliases.join(' ') },
  ];
  const parameters = tensors.filter(({ role }) => role === 'parameter');
  const buffers = tensors.filter(({ role }) => role === 'buffer');
  return [
    heading('Tensors'),
    {
      kind: 'table',
      columns,
      rows: flat ? parameters.map((each) => cells(each, each.name)) : treeRows(parameters, cells),
    },
    ...(buffers.length > 0
      ? [
          heading('Buffers'),
          { kind: 'table' as const, columns, rows: buffers.map((each) => cells(each, each.name)) },
        ]
      : []),
  ];
}

/** Each name below the parts that it shares with the one before it. */
function treeRows(
  tensors: readonly TensorEntry[],
  cells: (tensor: TensorEntry, text: string) => Cell[],
): Cell[][] {
  const rows: Cell[][] = [];
  let above: string[] = [];
  for (const tensor of tensors) {
    const parts = tensor.name.split('.');
    const folders = parts.slice(0, -1);
    const shared = folders.findIndex((part, depth) => part !== above[depth]);
    const from = shared < 0 ? folders.length : shared;
    for (const [offset, part] of folders.slice(from).entries()) {
      rows.push([
        { text: `${'  '.repeat(from + offset)}${part}`, value: '', tone: 'dim' },
        { text: '' },
        { text: '' },
        { text: '' },
      ]);
    }
    rows.push(cells(tensor, `${'  '.repeat(folders.length)}${parts.at(-1) ?? ''}`));
    above = folders;
  }
  return rows;
}

function aliasText(aliases: readonly string[]): string {
  const [first, ...others] = aliases;
  if (first === undefined) return '';
  return others.length === 0 ? first : `${first} … (${aliases.length} names)`;
}

/** Every figure of a result, in the order in which they are shown. */
function* figuresOf(value: unknown): Generator<Figure> {
  if (typeof value !== 'object' || value === null) return;
  if ('formula' in value && 'inputs' in value) {
    yield value as Figure;
    return;
  }
  for (const inner of Object.values(value)) yield* figuresOf(inner);
}

/** A table for each budget; a figure that stands in two is explained in the first. */
function explanationBlocks(result: ProfileResult): Block[] {
  const { parameters, bytes, inference, forwardFlops, trainingFlops, training, layers } = result;
  const sections = {
    parameters,
    'bytes of the weights': bytes,
    'inference memory': inference,
    'forward pass': forwardFlops,
    'training step': trainingFlops,
    'training memory': training,
    layers,
  };
  const seen = new Set<string>();
  const isNew = ({ label, formula, inputs }: Figure) => {
    const key = `${label} ${formula} ${Object.values(inputs).join()}`;
    return !seen.has(key) && seen.add(key);
  };
  return Object.entries(sections).flatMap(([name, section]) => {
    const figures = [...figuresOf(section)].filter(isNew);
    if (figures.length === 0) return [];
    return [heading(`How the figures come about: ${name}`), explanationTable(figures)];
  });
}

const explanationTable = (figures: readonly Figure[]): TableBlock => ({
  kind: 'table',
  columns: [
    left('figure', 'figure'),
    right('value', 'value'),
    left('unit', 'unit'),
    left('formula', 'formula', true),
    left('inputs', 'inputs', true),
    left('source', 'source', true),
  ],
  rows: figures.map(({ label, value, unit, formula, inputs, source }) => [
    strong(label),
    integerCell(value),
    { text: unit },
    { text: formula },
    {
      text: Object.entries(inputs)
        .map(([name, input]) => `${name} = ${formatInteger(input)}`)
        .join('; '),
    },
    { text: source },
  ]),
});

function publishedBlocks({ value, difference, explanations, tried }: PublishedReport): Block[] {
  const shown = formatInteger(value);
  const away = `${difference >= 0n ? '+' : '−'}${formatInteger(difference < 0n ? -difference : difference)}`;
  const [best] = explanations;
  if (!best) {
    return [
      heading(`Published: ${shown} (${away})`),
      note(`None of the ${tried} combinations of the usual slips gives this number.`),
    ];
  }
  if (best.reasons.length === 0) {
    return [
      heading(`Published: ${shown}`),
      note(`That is the number of parameters, ${formatInteger(best.value)}, to every digit given.`),
    ];
  }
  return [
    heading(`Published: ${shown} (${away})`),
    {
      kind: 'table',
      columns: [left('likely reason', 'reason', true), right('gives', 'value')],
      rows: explanations.map(({ reasons, value: gives }) => [
        { text: reasons.map(({ text }) => text).join('; and ') },
        integerCell(gives),
      ]),
    },
    note(`Of ${tried} combinations tried, the likeliest first.`),
  ];
}

function checksBlocks(checks: readonly LimitCheck[]): Block[] {
  return [
    heading('Limits'),
    {
      kind: 'table',
      columns: [
        left('limit', 'limit'),
        left('of', 'figure', true),
        right('allowed', 'allowed'),
        right('value', 'value'),
        left('verdict', 'verdict'),
      ],
      rows: checks.map(({ limit, allowed, figure, passed }) => [
        { text: `--${limit}` },
        { text: figure.label },
        integerCell(allowed),
        integerCell(figure.value),
        passed ? { text: 'kept', tone: 'good' } : { text: 'exceeded', tone: 'bad' },
      ]),
    },
  ];
}
