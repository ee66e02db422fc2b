/** Report of `minimind profile`: a block of tables for each budget. */

import type { CacheDtype } from '../../base/tensor/dtype.js';
import { stateDtypeOf } from '../../base/tensor/dtype.js';
import {
  nextCommand,
  type SettingName,
  type SettingValues,
  setting,
} from '../../base/text/setting.js';
import {
  dtypeWord,
  formatBytes,
  formatCount,
  formatFlops,
  formatInteger,
  formatMacs,
  formatSequences,
  formatShare,
  shortCount,
} from '../../base/text/units.js';
import { counted, joined, modelName } from '../../base/text/words.js';
import { present, sumOf } from '../../base/values.js';
import type { AdapterDescription } from '../../checkpoint/adapter/adapter.js';
import { ignoredText } from '../../checkpoint/reconcile/ignored-tensors.js';
import type { FitResult } from '../../estimate/fit/fits.js';
import type { CheckpointFacts } from '../../input/model-input/checkpoint/checkpoint-model.js';
import type { Bounds, Figure } from '../../model/budget/figure.js';
import type { LimitCheck, ResolvedSetting, TensorEntry } from '../../model/budget/profile-model.js';
import type { StoredWeights } from '../../model/quantization/stored-weights.js';
import type { ProfileResult } from '../command-results.js';
import { fullWindowsText } from '../kit/full-windows.js';
import type { Block, Fact, Report, TableBlock, Tone, Verdict } from '../kit/report.js';
import {
  barCell,
  binaryCell,
  bytesCell,
  flopsCell,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  right,
  shareCell,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import {
  explainedFigures,
  explanationBlocks,
  explanationData,
  publishedBlocks,
} from './explanation.js';
import { inventoryBlocks, layersBlocks } from './inventory.js';
import { profilePictures } from './profile-pictures.js';
import {
  configText,
  contextText,
  generationNote,
  precisionText,
  settingNotes,
} from './setting-notes.js';

/** Columns of the bar of the largest component. */
const BAR_WIDTH = 24;
/** Columns of the bar of the total, in the narrower table of FLOPs. */
const FLOPS_BAR_WIDTH = 16;

/** Requested additions to the answer. */
interface Asked {
  readonly explain: boolean;
  /** Whether to output for programs, without a tree of names. */
  readonly flat: boolean;
  /** Flags of the model, for the next command. */
  readonly modelWords: readonly string[];
  /** Settings that `fit` has too, for the next command. */
  readonly fitSettings?: SettingValues;
  /** The model as the user wrote it. */
  readonly name?: string | undefined;
  /** Lists the tensors of the model, for a picture. */
  readonly allTensors: () => readonly TensorEntry[];
  /** Serving on the GPU of the memory, for the roofline of a page. */
  readonly serving?: FitResult['serving'];
}

export function profileReport(
  result: ProfileResult,
  { explain, flat, modelWords, fitSettings, name, allTensors, serving }: Asked,
): Report {
  const { layers, tensors, published, checks } = result;
  const inventory = [
    ...(layers ? layersBlocks(layers, flat) : []),
    ...(tensors ? inventoryBlocks(tensors, flat) : []),
  ];
  const facts = profileFacts(result);
  return {
    verdict: profileVerdict(result),
    blocks: [
      { kind: 'facts', facts },
      ...(checks.length > 0 ? [checksTable(checks)] : []),
      ...(published ? publishedBlocks(published) : []),
      componentsTable(result, componentRows(result.parameters, mostRows(facts.length))),
      ...inventory,
      ...(explain ? explanationBlocks(sectionsOf(result)) : []),
    ],
    details: [
      ...settingNotes(result.setting),
      ...parameterDetails(result),
      ...(result.checkpoint ? checkpointBlocks(result.checkpoint) : []),
      ...inferenceBlocks(result),
      ...flopsBlocks(result),
      ...trainingBlocks(result),
    ],
    pictures: () => profilePictures(result, tensors ?? allTensors(), serving),
    ...(!explain && { derivations: () => explanationBlocks(sectionsOf(result)) }),
    more: explain ? [] : ['explain'],
    next: nextCommand('fit', [nameOf(result, name), ...modelWords], fitSettings),
    data:
      inventory.find((block) => block.kind === 'table') ??
      (explain ? explanationData(sectionsOf(result)) : figuresTable(result)),
  };
}

/** The model as it was typed, where that is the short name of a preset. */
const nameOf = ({ file }: ProfileResult, typed: string | undefined): string =>
  typed !== undefined && file.endsWith(`/${typed}`) ? typed : file;

function profileVerdict({ file, family, parameters, layerCount }: ProfileResult): Verdict {
  const { total, nonEmbedding, active } = parameters;
  const used = active.value < total.value ? `, ${shortCount(active.value)} active per token` : '';
  return {
    text:
      `${modelName(file)} · ${family} · ${shortCount(total.value)} parameters${used} ` +
      `(${shortCount(nonEmbedding.value)} non-embedding), ${counted(layerCount, 'layer')}`,
  };
}

function profileFacts({
  adapter,
  parameters,
  inference,
  served,
  stored,
  checkpoint,
  bytes,
  forwardFlops,
  training,
  setting,
  weights: weightFormat,
  onGpu,
  encoder,
}: ProfileResult): Fact[] {
  const { state, total, weights } = inference;
  const { batch, context, dtype } = setting.inference;
  const tokens = `${formatSequences(batch, context)}${contextText(setting.origins.context)}`;
  const bf16 = bytes.find((each) => each.dtype === 'bf16');
  const format = weightFormat?.dtype ?? dtypeWord(dtype);
  const others = [...(bf16 ? [{ dtype: 'bf16', bytes: bf16.bytes }] : []), ...served].filter(
    (each) => each.dtype !== format,
  );
  return present([
    {
      name: 'weights',
      text: present([
        checkpoint?.isPacked && `${formatBytes(checkpoint.totals.distinctBytes)} as stored`,
        ...[{ dtype: format, bytes: weights }, ...others].map(
          (each) => `${formatBytes(each.bytes.value)} ${each.dtype}`,
        ),
      ]).join(' · '),
    },
    stored && { name: 'stored', text: `${formatBytes(stored.total.value)} (${stored.label})` },
    checkpoint && { name: 'checkpoint', ...checkpointFact(checkpoint) },
    checkpoint?.ignored && { name: 'not counted', text: ignoredText(checkpoint.ignored) },
    adapter && adapterFact(adapter, Number(parameters.total.value)),
    ...stateFacts(state, setting),
    encoder?.isAlone && { name: 'KV cache', text: 'none: an encoder generates no tokens' },
    {
      name: 'inference',
      text: `${formatBytes(total.value)} ${format}, ${tokens}${onGpuText(onGpu?.serving)}`,
    },
    {
      name: 'compute',
      text:
        `${formatFlops(BigInt(forwardFlops.total.value) / BigInt(batch * context))} per token, ` +
        `${formatFlops(forwardFlops.total.value)} per forward pass${setting.inference.causal ? ' (causal)' : ''}` +
        (encoder?.uncounted ? `; those of the ${encoder.uncounted} are not counted` : ''),
    },
    { name: 'training', text: trainingFact(training, setting, onGpu) },
  ]);
}

function adapterFact(adapter: AdapterDescription, parameters: number): Fact {
  const { rank, alpha, parameters: added, bytes } = adapter;
  const share = formatShare(added, parameters);
  return {
    name: 'adapter',
    text: `LoRA, rank ${rank}, alpha ${alpha}: ${formatInteger(added)} parameters (${share} of the model), ${formatBytes(bytes)} stored`,
  };
}

function checkpointFact({ totals, matches, config }: CheckpointFacts): Omit<Fact, 'name'> {
  const stored = `${counted(totals.distinctTensors, 'tensor')}, ${formatBytes(totals.distinctBytes)}`;
  // The note on stderr has the whole path.
  const name = config.file.split(/[\\/]/).at(-1) ?? config.file;
  return matches
    ? { text: `${stored}; names, shapes and types match ${name}` }
    : { text: `${stored}; does not match ${name}`, tone: 'bad' };
}

function stateFacts(state: State, { inference }: ResolvedSetting): Fact[] {
  const { keyValueCache, keyValuePerToken, keyValuePerTokenPastWindows: past, windows } = state;
  const full = fullWindowsText({
    perToken: Number(keyValuePerToken.value),
    total: Number(keyValueCache.value),
    tokens: inference.batch * inference.context,
    rules: windows.map(({ rule }) => rule),
  });
  const recurrent = recurrentStates(state);
  const [first] = recurrent;
  // Beyond its windows a compressed cache still grows.
  const grows = full !== undefined && windows.some(({ rule }) => rule === 'compressed');
  return present([
    keyValueCache.value > 0 && {
      name: 'KV cache',
      text:
        `${formatBytes(keyValuePerToken.value)} per token, ` +
        (grows ? `${formatBytes(past.value)} with ${full}; ` : '') +
        `${formatBytes(keyValueCache.value)} for ` +
        formatSequences(inference.batch, inference.context) +
        (full && !grows ? ` (${full})` : ''),
    },
    first && {
      name: first.label,
      text: `${formatBytes(sumOf(recurrent, ({ value }) => Number(value)))} in ${stateTypes(state, inference.cacheDtype ?? inference.dtype)}`,
    },
  ]);
}

/** Types of the recurrent states: the type of the cache, or float32 if transformers keeps them in it. */
function stateTypes({ mambaState }: State, cache: CacheDtype): string {
  const cacheDtype = stateDtypeOf(cache);
  if (cacheDtype === 'f32') return 'f32';
  const isFloat32 = 'float32_values' in mambaState.inputs;
  return `${isFloat32 ? 'float32, convolutions in ' : ''}${dtypeWord(cacheDtype)}`;
}

/** The estimate of `fit`: on a GPU, the workspace of its kernels is added. */
const onGpuText = (bytes: Bounds | undefined): string =>
  bytes === undefined ? '' : `; ${formatBytes(Math.round(bytes.expected.value))} with workspace`;

/** `144.3 GB, AdamW, mixed precision; 168.0 GB with workspace (estimate, NVIDIA H100)`. */
function trainingFact(
  { total, optimizer }: ProfileResult['training'],
  { training, inference }: ResolvedSetting,
  onGpu: ProfileResult['onGpu'],
) {
  const { batch, context, precision, recompute } = training;
  const how = present([
    formatBytes(total.value),
    optimizer.label.replace(/^optimizer: /, ''),
    precisionText(precision),
    batch !== inference.batch && formatSequences(batch, context),
    recompute !== 'none' && `recomputation ${recompute}`,
  ]).join(', ');
  return `${how}${onGpuText(onGpu?.training)}`;
}

/** Maximum rows of the answer's table, with its total. Many facts leave fewer rows, so that all fit on a screen. */
const mostRows = (facts: number) => Math.min(10, 16 - facts);

/** The largest components in the order of the model, and the sum of the others. */
function componentRows(
  { components }: ProfileResult['parameters'],
  most: number = Number.POSITIVE_INFINITY,
) {
  const rows = components.map(({ parameters: { label, value } }) => ({ label, value }));
  if (rows.length < most) return rows;
  const largest = rows.toSorted((a, b) => Number(b.value) - Number(a.value));
  const others = largest.slice(most - 2);
  return [
    ...rows.filter((row) => !others.includes(row)),
    {
      label: joined(others.map(({ label }) => label)),
      value: others.reduce((sum, { value }) => sum + BigInt(value), 0n),
    },
  ];
}

/** Parameters by component, with bars. */
function componentsTable(
  { parameters }: ProfileResult,
  shown: readonly { readonly label: string; readonly value: number | bigint }[],
): TableBlock {
  const total = parameters.total.value;
  const largest = shown.reduce(
    (most, { value }) => (value > most ? value : most),
    0 as number | bigint,
  );
  return tableOf(
    shown,
    [
      leftColumn('component', 'component', ({ label }) => label),
      right('parameters', 'parameters', ({ value }) => integerCell(value)),
      right('share', 'share', ({ value }) => shareCell(value, total)),
      leftColumn('', 'bar', ({ value }) => barCell(Number(value) / Number(largest), BAR_WIDTH)),
    ],
    [
      [
        strongCell('total'),
        { ...integerCell(total), tone: 'strong' },
        shareCell(total, total),
        {
          text: parameters.components.some(({ component }) => component === 'head')
            ? ''
            : 'the head shares the embedding',
          value: '',
          tone: 'dim',
        },
      ],
    ],
  );
}

/** All figures for programs, one per row. */
function figuresTable(result: ProfileResult): TableBlock {
  const figures = Object.entries(sectionsOf(result)).flatMap(([section, value]) =>
    [...explainedFigures(value)].map(([figure]) => ({ section, figure })),
  );
  return tableOf(figures, [
    leftColumn('section', 'section', ({ section }) => section),
    leftColumn('figure', 'figure', ({ figure }) => figure.label),
    leftColumn('value', 'value', ({ figure: { value } }) =>
      typeof value === 'bigint' ? String(value) : valueCell(value),
    ),
    leftColumn('unit', 'unit', ({ figure }) => figure.unit),
  ]);
}

/** The explained budgets, in display order. */
function sectionsOf(result: ProfileResult): Record<string, unknown> {
  const { parameters, bytes, inference, forwardFlops, trainingFlops, training } = result;
  const { layers, stored, served } = result;
  return {
    parameters,
    'bytes of the weights': bytes,
    'weights as stored': stored,
    'weights as served': served,
    'inference memory': inference,
    'forward pass': forwardFlops,
    'training step': trainingFlops,
    'training memory': training,
    layers,
  };
}

function parameterDetails(result: ProfileResult): Block[] {
  const { parameters, bytes, stored } = result;
  const total = parameters.total.value;
  const counts = [
    parameters.trainable,
    parameters.embedding,
    parameters.nonEmbedding,
    parameters.body,
    ...(parameters.active.value < total
      ? [parameters.active, parameters.activeWithoutEmbedding]
      : []),
    ...(parameters.contested.length > 0 ? [parameters.withContested] : []),
  ];
  return [
    headingBlock(`Parameters: ${total < 1e6 ? formatInteger(total) : formatCount(total)}`),
    componentsTable(result, componentRows(parameters)),
    tableOf(
      counts,
      [
        leftColumn('count', 'count', ({ label }) => label),
        right('values', 'values', ({ value }) => integerCell(value)),
        right('share', 'share', ({ value }) => shareCell(value, total)),
      ],
      [
        [
          { text: 'buffers (stored, not parameters)' },
          integerCell(parameters.buffers.value),
          { text: '' },
        ],
      ],
    ),
    ...contestedNotes(parameters.contested),
    tableOf(
      [...bytes, ...(stored ? [{ dtype: 'as stored', bytes: stored.total }] : [])],
      [
        leftColumn('all weights in', 'dtype', ({ dtype }) => valueCell(dtype, dtypeWord)),
        right('bytes', 'bytes', ({ bytes: { value } }) => integerCell(value)),
        right('decimal', 'gigabytes', ({ bytes: { value } }) => ({
          text: formatBytes(value),
          value: Number(value) / 1e9,
        })),
        right('binary', 'gibibytes', ({ bytes: { value } }) => binaryCell(value)),
      ],
    ),
    ...(stored ? [noteOf(storedText(stored))] : []),
  ];
}

function storedText({ label, parts, total }: StoredWeights): string {
  const each = parts.map(({ bytes: { label: part, value } }) => `${formatBytes(value)} ${part}`);
  return `Weights as stored: ${formatBytes(total.value)} (${label}): ${each.join(', ')}.`;
}

const contestedNotes = (contested: ProfileResult['parameters']['contested']): Block[] =>
  contested.map(({ pattern, values, reason }) =>
    noteOf(
      `The ${formatInteger(values)} values of ${pattern} are a buffer here, and no parameters: ${reason}.`,
    ),
  );

/** A table of byte figures and their sum. */
function bytesTable(figures: readonly Figure[], sum: Figure): TableBlock {
  const rows = [
    ...figures.map(({ label, value }) => ({ label, value, tone: 'plain' as Tone })),
    { label: 'total', value: sum.value, tone: 'strong' as Tone },
  ];
  return tableOf(rows, [
    leftColumn('what', 'what', ({ label: text, tone }) => ({ text, tone })),
    right('memory', 'bytes', ({ value, tone }) => ({ ...bytesCell(value), tone })),
    right('binary', 'gibibytes', ({ value }) => binaryCell(value)),
    right('share', 'share', ({ value }) => shareCell(value, sum.value)),
  ]);
}

/** The stored tensors of a checkpoint. */
function checkpointBlocks({ totals, config, matches }: CheckpointFacts): Block[] {
  const { dtypes, distinctTensors, distinctElements, distinctBytes, tensors } = totals;
  return [
    headingBlock(`Stored: ${formatBytes(distinctBytes)}`),
    tableOf(
      dtypes,
      [
        leftColumn('type', 'dtype', ({ dtype }) => dtype),
        right('tensors', 'tensors', (each) => integerCell(each.tensors)),
        right('values', 'values', ({ elements }) => integerCell(elements)),
        right('bytes', 'bytes', ({ bytes }) => bytesCell(bytes)),
      ],
      [
        [
          strongCell('total'),
          integerCell(distinctTensors),
          integerCell(distinctElements),
          bytesCell(distinctBytes),
        ],
      ],
    ),
    noteOf(
      `Each tensor once, buffers included; ${formatInteger(tensors)} names. ` +
        `Names, shapes and types are ${matches ? '' : 'not '}as the config describes; ${configText(config)}.`,
    ),
  ];
}

function inferenceBlocks({ inference }: ProfileResult): Block[] {
  const { state, weights, buffers, total } = inference;
  return [
    headingBlock(`Inference memory: ${formatBytes(total.value)}`),
    bytesTable([weights, buffers, state.keyValueCache, ...recurrentStates(state)], total),
    noteOf(stateText(state)),
    ...windowNotes(state),
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
  return `Total state: ${formatBytes(total.value)}. ${grows}${full}${others}.`;
}

const WINDOWS = {
  local:
    'Decoding slides the windows: a local head keeps window // 2 + 1 keys. (A full forward pass of at most ' +
    'window_size tokens would see all of them.) The original code never evicts a key: its cache keeps all.',
  sliding: 'A sliding window keeps only the keys that a query sees.',
  chunked:
    'A chunked head sees the keys of its own chunk; as in transformers, the cache keeps one key less than a chunk has.',
  both: 'A head sees keys before and behind its position.',
  compressed: 'Compressed attention keeps one entry in place of the keys of a block of tokens.',
} as const satisfies Record<State['windows'][number]['rule'], string>;

const windowNotes = ({ windows }: State): Block[] =>
  [...new Set(windows.map(({ rule }) => rule))].map((rule) => noteOf(WINDOWS[rule]));

function flopsBlocks(result: ProfileResult): Block[] {
  const { forwardFlops, trainingFlops, setting: asked, parameters, generation } = result;
  const { parts, total, macs } = forwardFlops;
  const { causal, batch, context } = asked.inference;
  const tokens = (sequences: number) => formatSequences(sequences, context);
  return present([
    headingBlock(`Forward pass: ${formatFlops(total.value)}`),
    tableOf(
      parts,
      [
        leftColumn('what', 'what', ({ flops }) => flops.label),
        right('forward', 'forward_flops', ({ flops }) => flopsCell(flops.value)),
        right('share', 'share', ({ flops }) => shareCell(flops.value, total.value)),
        right('training', 'training_flops', (_, index) =>
          flopsCell(trainingFlops.parts[index]?.flops.value ?? 0),
        ),
        leftColumn('', 'bar', ({ flops }) =>
          barCell(Number(flops.value) / Number(total.value), FLOPS_BAR_WIDTH),
        ),
      ],
      [
        [
          strongCell('total'),
          { ...flopsCell(total.value), tone: 'strong' },
          shareCell(total.value, total.value),
          { ...flopsCell(trainingFlops.total.value), tone: 'strong' },
          { text: '' },
        ],
      ],
    ),
    noteOf(
      `A forward pass over ${tokens(batch)}; a training step over ${tokens(asked.training.batch)}. ` +
        `The matrix products of the forward pass are ${formatMacs(macs.value)} (1 MAC is 2 FLOP).`,
    ),
    noteOf(
      causal
        ? 'Attention counts the pairs that the mask lets through, windows included.'
        : `Attention counts the whole square of positions; ${setting('causal')} counts what the mask lets through.`,
    ),
    generation && generationNote(generation),
    parameters.active.value < parameters.total.value &&
      noteOf('Of a mixture those experts are counted that one token goes to, and all shared ones.'),
  ]);
}

function trainingBlocks({ training, onGpu, setting: asked }: ProfileResult): Block[] {
  const { weights, gradients, optimizer, buffers, activations, total } = training;
  return present([
    headingBlock(`Training memory on one device: ${formatBytes(total.value)}`),
    bytesTable(
      [weights, gradients, optimizer, buffers, ...activations.parts.map(({ bytes }) => bytes)],
      total,
    ),
    noteOf(
      `Activations with recomputation ${asked.training.recompute}: selective drops attention scores and scan ` +
        'states, as fused kernels do, and full all but the inputs of the blocks and one block at a time. ' +
        'What dropout keeps, workspaces and fragmentation come on top.',
    ),
    noteOf(
      `Fused kernels keep neither scores nor scan states: fit ${setting('attention', 'plain')} counts both.` +
        (onGpu
          ? ` With the workspace of kernels: ${boundsText(onGpu.training)} on ${onGpu.gpu}.`
          : ''),
    ),
  ]);
}

const boundsText = ({ lower, expected, upper }: Bounds): string =>
  `${formatBytes(Math.round(expected.value))} (${formatBytes(Math.round(lower.value))}–${formatBytes(Math.round(upper.value))})`;

/** The setting of each limit. */
const LIMIT_SETTINGS = {
  'max-params': 'maxParameters',
  'max-memory': 'maxMemory',
  'max-kv-cache': 'maxKvCache',
  'max-training-memory': 'maxTrainingMemory',
  'max-flops': 'maxFlops',
} as const satisfies Record<LimitCheck['limit'], SettingName>;

function checksTable(checks: readonly LimitCheck[]): TableBlock {
  return tableOf(checks, [
    leftColumn('limit', 'limit', ({ limit }) => setting(LIMIT_SETTINGS[limit])),
    wrapColumn('of', 'figure', ({ figure }) => figure.label),
    right('allowed', 'allowed', ({ allowed }) => integerCell(allowed)),
    right('value', 'value', ({ figure }) => integerCell(figure.value)),
    leftColumn('verdict', 'verdict', ({ passed }) =>
      passed ? { text: 'kept', tone: 'good' } : { text: 'exceeded', tone: 'bad' },
    ),
  ]);
}
