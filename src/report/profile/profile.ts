/** Report of `minimind profile`: a block of tables for each budget. */
import type { Figure } from '../../budget/figure.js';
import type {
  BlockBudget,
  LimitCheck,
  ModelProfile,
  ResolvedSetting,
  TensorEntry,
} from '../../budget/profile-model.js';
import type { PublishedReport } from '../../budget/published.js';
import type { CheckpointFound } from '../../model-input/checkpoint-model.js';
import type { StoredWeights } from '../../quantization/stored-weights.js';
import type { Dtype } from '../../tensor/dtype.js';
import {
  formatBytes,
  formatCount,
  formatFlops,
  formatInteger,
  formatMacs,
} from '../../text/units.js';
import { checkpointBlocks } from '../inspect/inspect-text.js';
import {
  bar,
  binaryCell,
  bytesCell,
  flopsCell,
  heading,
  integerCell,
  left,
  note,
  right,
  settingNotes,
  shareCell,
  strong,
} from '../kit/cells.js';
import type { Block, Cell, Report, TableBlock, Tone } from '../kit/report.js';
import { explanationBlocks, inventoryBlocks, layersBlocks } from './inventory.js';

/** Full result of the command. */
export interface ProfileResult extends ModelProfile {
  readonly file: string;
  readonly family: string;
  readonly setting: ResolvedSetting;
  readonly checks: readonly LimitCheck[];
  readonly published?: PublishedReport;
  readonly layers?: readonly BlockBudget[];
  readonly tensors?: readonly TensorEntry[];
  /** Set when the model is from a checkpoint. */
  readonly checkpoint?: CheckpointFound;
  /** Set when a config has quantized weights. */
  readonly stored?: StoredWeights;
}

/** Columns of the bar of the largest component. */
const BAR_WIDTH = 24;
/** Columns of the bar of the total, in the narrower table of FLOPs. */
const FLOPS_BAR_WIDTH = 16;

/** @param flat Whether to output for programs, without a tree of names. */
export function profileReport(
  result: ProfileResult,
  { explain, flat }: { readonly explain: boolean; readonly flat: boolean },
): Report {
  return {
    blocks: [
      heading(`${result.family} model of ${result.file}`),
      ...settingNotes(result.setting),
      ...parametersBlocks(result),
      ...(result.checkpoint ? checkpointBlocks(result.checkpoint) : []),
      ...inferenceBlocks(result),
      ...flopsBlocks(result),
      ...trainingBlocks(result),
      ...(result.layers ? layersBlocks(result.layers, flat) : []),
      ...(result.tensors ? inventoryBlocks(result.tensors, flat) : []),
      ...(explain ? explanationBlocks(sectionsOf(result)) : []),
      ...(result.published ? publishedBlocks(result.published) : []),
      ...(result.checks.length > 0 ? checksBlocks(result.checks) : []),
    ],
  };
}

/** The explained budgets, in display order. */
function sectionsOf(result: ProfileResult): Record<string, unknown> {
  const { parameters, bytes, inference, forwardFlops, trainingFlops, training } = result;
  const { layers, stored } = result;
  return {
    parameters,
    'bytes of the weights': bytes,
    'weights as stored': stored,
    'inference memory': inference,
    'forward pass': forwardFlops,
    'training step': trainingFlops,
    'training memory': training,
    layers,
  };
}

function parametersBlocks({ parameters, bytes, stored }: ProfileResult): Block[] {
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
    parameters.body,
    ...(parameters.active.value < total
      ? [parameters.active, parameters.activeWithoutEmbedding]
      : []),
    ...(parameters.contested.length > 0 ? [parameters.withContested] : []),
    parameters.buffers,
  ].map((figure): Cell[] => [
    { text: figure.label, tone: 'dim' },
    integerCell(figure.value),
    figure === parameters.buffers ? { text: '' } : shareCell(figure.value, total),
    {
      text: figure === parameters.buffers ? 'stored, but no parameters' : '',
      value: '',
      tone: 'dim',
    },
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
    ...contestedNotes(parameters.contested),
    {
      kind: 'table',
      columns: [
        left('all weights in', 'dtype'),
        right('bytes', 'bytes'),
        right('decimal', 'gigabytes'),
        right('binary', 'gibibytes'),
      ],
      rows: [
        ...bytes.map(({ dtype, bytes: figure }) => weightsRow(dtype, figure)),
        ...(stored ? [weightsRow('as stored', stored.total)] : []),
      ],
    },
    ...(stored ? [note(storedText(stored))] : []),
  ];
}

const weightsRow = (label: string, figure: Figure): Cell[] => [
  { text: label },
  integerCell(figure.value),
  { text: formatBytes(figure.value), value: Number(figure.value) / 1e9 },
  binaryCell(figure),
];

function storedText({ label, parts, total }: StoredWeights): string {
  const each = parts.map(({ bytes: { label: part, value } }) => `${formatBytes(value)} ${part}`);
  return `Weights as stored: ${formatBytes(total.value)} (${label}): ${each.join(', ')}.`;
}

const contestedNotes = (contested: ProfileResult['parameters']['contested']): Block[] =>
  contested.map(({ pattern, values, reason }) =>
    note(
      `The ${formatInteger(values)} values of ${pattern} are a buffer here, and no parameters: ${reason}.`,
    ),
  );

/** A table of byte figures and their sum. */
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

function inferenceBlocks({ inference, setting }: ProfileResult): Block[] {
  const { state, weights, buffers, total } = inference;
  return [
    heading(`Inference memory: ${formatBytes(total.value)}`),
    bytesTable([weights, buffers, state.keyValueCache, ...recurrentStates(state)], total),
    note(stateText(state)),
    ...windowNotes(state),
    ...quantisedNotes(setting.inference.dtype),
  ];
}

/** Names that `fit` uses for the types whose weights need scales. */
const QUANTISED = {
  f8_e4m3: 'f8',
  f8_e5m2: 'f8',
  i8: 'int8',
  i4: 'int4',
} as const satisfies Partial<Record<Dtype, string>>;

/** Profile uses one type for everything: files served in a quantized type are larger. */
function quantisedNotes(dtype: Dtype): Block[] {
  if (!(dtype in QUANTISED)) return [];
  const served = QUANTISED[dtype as keyof typeof QUANTISED];
  return [
    note(
      `All weights and the cache are counted in ${dtype}, without scales. fit --dtype ${served} counts scales, leaves ` +
        'embedding, head and norms in 16 bits, and keeps the cache in bf16.',
    ),
  ];
}

type State = ProfileResult['inference']['state'];

const recurrentStates = ({ mambaState, convolutionState }: State): Figure[] =>
  [mambaState, convolutionState].filter(({ value }) => value > 0);

function stateText(state: State): string {
  const { total, keyValuePerToken, keyValuePerTokenPastWindows: past, windows } = state;
  const grows = `A token of one sequence adds ${formatBytes(keyValuePerToken.value)} of keys and values`;
  const full = windows.length > 0 ? `, ${formatBytes(past.value)} once every window is full` : '';
  const others = recurrentStates(state).length > 0 ? '; the other states do not grow' : '';
  return `State in all: ${formatBytes(total.value)}. ${grows}${full}${others}.`;
}

const WINDOWS = {
  local:
    'Decoding slides the windows: a local head keeps window // 2 + 1 keys. (A full forward pass of at most ' +
    'window_size tokens would see all of them.) The original code never evicts a key: its cache keeps all.',
  sliding: 'A sliding window keeps the keys that a query sees: as many as it is wide.',
} as const satisfies Record<State['windows'][number]['rule'], string>;

const windowNotes = ({ windows }: State): Block[] =>
  [...new Set(windows.map(({ rule }) => rule))].map((rule) => note(WINDOWS[rule]));

function flopsBlocks({ forwardFlops, trainingFlops, setting, parameters }: ProfileResult): Block[] {
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
    ...(parameters.active.value < parameters.total.value
      ? [
          note(
            'Of a mixture those experts are counted that one token goes to, and all shared ones.',
          ),
        ]
      : []),
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
    ...(hasPlainKernels(activations)
      ? [
          note(
            'Scores and scan states are counted, as plain kernels keep them. fit counts fused kernels, which keep neither: ' +
              'its --attention plain counts what is counted here.',
          ),
        ]
      : []),
  ];
}

/** Whether there are activations that fused kernels would not save. */
const hasPlainKernels = ({ parts }: ProfileResult['training']['activations']): boolean =>
  parts.some(({ part, bytes }) => (part === 'scores' || part === 'scanStates') && bytes.value > 0);

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
