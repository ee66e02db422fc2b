/** Report of `minimind rope`: a table of methods, a plot and a table of frequencies for each rotation. */

import { setting } from '../base/text/setting.js';
import { formatInteger } from '../base/text/units.js';
import { counted, joined } from '../base/text/words.js';
import { present, sumOf } from '../base/values.js';
import type { RotaryScaling } from '../model/architecture/layer.js';
import type {
  ContextFrom,
  RopeAnalysis,
  RopeChange,
  RopeFrequency,
  RopeMethod,
  RopeMethodId,
  RopeRotary,
  TrainedFrom,
} from '../model/budget/analyse-rope.js';
import type { RopeResult } from './command-results.js';
import type { PlotBlock } from './kit/pictures.js';
import type { Block, Cell, Column, Report, TableBlock, Tone, Verdict } from './kit/report.js';
import {
  CURRENT_MARK,
  codeLine,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  right,
  tableOf,
  valueCell,
  wrapColumn,
} from './kit/report.js';

export function ropeReport(analysis: RopeResult): Report {
  const { rotaries, settings } = analysis;
  const [first, ...others] = rotaries;
  return {
    verdict: ropeVerdict(analysis),
    blocks: present([
      ...lengthNotes(analysis),
      first && methodTable(first.methods, true),
      others.length > 0 &&
        noteOf(`${counted(others.length, 'other rotation')}: ${setting('details')}.`),
      ...settingsBlocks(analysis, settings),
    ]),
    details: [
      ...rotaries.flatMap((rotary) => rotaryBlocks(rotary, analysis, rotary !== first)),
      ...EXPLANATIONS.map(noteOf),
    ],
    data: ropeTable(analysis),
  };
}

/** Lines for the config, ready to paste. */
function settingsBlocks(analysis: RopeAnalysis, settings: RopeResult['settings']): Block[] {
  if (!analysis.needsScaling) return [];
  if (!settings) return [noteOf('The config of this family has no settings for YaRN.')];
  return [
    headingBlock(settings.format === 'json' ? 'YaRN in config.json' : 'YaRN in the config (YAML)'),
    ...settings.text.split('\n').map(codeLine),
  ];
}

function ropeVerdict(analysis: RopeAnalysis): Verdict {
  const { context, trained, rotaries, needsScaling } = analysis;
  const positions = formatInteger(context);
  const own = rotaries.map(({ methods }) => methods.find(({ current }) => current));
  const names = [...new Set(own.flatMap((method) => (method ? [methodName(method)] : [])))];
  const unseen = sumOf(own, (method) => method?.counts.extrapolated ?? 0);
  if (unseen > 0 && !needsScaling) {
    return {
      text:
        `${positions} positions are within those of the config, with its own scaling (${joined(names.map((name) => name.replace('own: ', '')))}); ` +
        `${counted(unseen, 'frequency').replace(/ys$/, 'ies')} beyond the original ${formatInteger(trained)}`,
    };
  }
  if (!needsScaling) {
    return context <= trained
      ? {
          text: `${counted(context, 'position')} ${context === 1 ? 'is' : 'are'} within the trained ${formatInteger(trained)}`,
        }
      : {
          text: `${positions} positions work with the RoPE of the model (${joined(names.map((name) => name.replace('own: ', '')))}): no angle is unseen`,
          tone: 'good',
        };
  }
  const all = sumOf(rotaries, ({ rotatedDim }) => rotatedDim / 2);
  const helps = (rotaries[0]?.methods ?? []).filter(
    ({ id }) =>
      id !== 'own' &&
      rotaries.every(({ methods }) =>
        methods.some((method) => method.id === id && method.counts.extrapolated === 0),
      ),
  );
  const yarn = helps.filter(({ id }) => id === 'yarn');
  const helping = yarn.length > 0 ? yarn : helps;
  return {
    text:
      `${positions} positions: ${formatInteger(unseen)} of ${formatInteger(all)} frequencies meet unseen angles` +
      (helping.length > 0 ? `, none with ${joined(helping.map(methodName))}` : ''),
    tone: 'bad',
  };
}

const TRAINED_FROM = {
  flag: '',
  scaling: ' (original positions of its scaling)',
  get positions() {
    return ` (positions of the config; change with ${setting('trained')})`;
  },
} as const satisfies Record<TrainedFrom, string>;

const CONTEXT_FROM = {
  flag: '',
  config: ' (positions of the config)',
  default: ' (default: 4 × the training)',
} as const satisfies Record<ContextFrom, string>;

function lengthNotes(analysis: RopeAnalysis): Block[] {
  const { context, contextFrom, trained, trainedFrom, factor, layersWithout } = analysis;
  return [
    noteOf(
      `Trained: ${formatInteger(trained)}${TRAINED_FROM[trainedFrom]}. ` +
        `Context: ${formatInteger(context)}${CONTEXT_FROM[contextFrom]}. Factor: ${decimals(factor)}.` +
        (layersWithout > 0
          ? ` ${counted(layersWithout, 'attention layer')} without rotary positions.`
          : ''),
    ),
  ];
}

const EXPLANATIONS = [
  `${CURRENT_MARK} as in the model. kept: the frequency is unchanged. fully: divided by the factor or more. partly: ` +
    'changed by less.',
  '! unseen: the wave is longer than the training, which has only part of a turn, and the context turns further.',
  'amplitude: factor of cosine and sine. turns: turns of the plain wave within the training.',
];

const NAMES = {
  plain: 'plain',
  linear: 'linear',
  ntk: 'NTK-aware',
  yarn: 'YaRN',
  llama3: 'llama3',
  own: 'own',
} as const satisfies Record<RopeMethodId, string>;

/** Names of the model's own scalings. */
const SCALINGS = {
  linear: 'linear',
  proportional: 'proportional',
  reordered: 'reordered',
  dynamic: 'dynamic NTK',
  llama3: 'llama3',
  yarn: 'YaRN',
  earlyYarn: 'early YaRN',
  longrope: 'LongRoPE',
} as const satisfies Record<RotaryScaling['kind'], string>;

/** @param hasMethods Whether to show the methods, which the answer has for the first rotation. */
function rotaryBlocks(rotary: RopeRotary, analysis: RopeAnalysis, hasMethods: boolean): Block[] {
  const { layers, base, headDim, rotatedDim, pairs, window } = rotary;
  const part = rotatedDim === headDim ? '' : `, of which ${rotatedDim} are rotated`;
  return present([
    headingBlock(
      `${counted(layers, 'layer')}: base ${decimals(base)}, heads of ${headDim} dimensions${part}`,
    ),
    noteOf(
      `${counted(rotatedDim / 2, 'frequency').replace(/ys$/, 'ies')}; dimensions ` +
        (pairs === 'halves'
          ? `j and j + ${rotatedDim / 2} turn together.`
          : '2j and 2j + 1 turn together.'),
    ),
    window !== null &&
      noteOf(
        `These layers see at most ${formatInteger(window)} positions, so a longer context has no unseen angles for them.`,
      ),
    hasMethods && methodTable(rotary.methods, true),
    plotOf(rotary, analysis),
    frequencyTable(rotary.methods, analysis.trained),
  ]);
}

const methodName = ({ id, scaling }: RopeMethod): string =>
  id === 'own' && scaling ? `${NAMES.own}: ${SCALINGS[scaling.kind]}` : NAMES[id];

/** Short text of a method's parameters. */
function methodSetting({ id, base, scaling }: RopeMethod): string {
  if (scaling === null) return id === 'ntk' ? `base ${decimals(base)}` : '–';
  switch (scaling.kind) {
    case 'linear':
      return `÷ ${decimals(scaling.factor)}`;
    case 'proportional':
      return `the first ${scaling.pairs}, ÷ ${decimals(scaling.factor)}`;
    case 'reordered':
      return 'each pair has the frequency of another';
    case 'dynamic':
      return `by length, ${decimals(scaling.factor)}`;
    case 'llama3':
      return `÷ ${decimals(scaling.factor)}, turns ${range(scaling.lowFrequencyFactor, scaling.highFrequencyFactor)}`;
    case 'yarn':
      return `÷ ${decimals(scaling.factor)}, turns ${range(scaling.betaSlow, scaling.betaFast)}`;
    case 'earlyYarn':
      return `÷ ${decimals(scaling.factor)}, by index`;
    case 'longrope':
      return 'one divisor each';
  }
}

/** Range of turns in the trained context within which a frequency is partly divided. */
const range = (low: number, high: number) => `${decimals(low)}–${decimals(high)}`;

function methodTable(methods: readonly RopeMethod[], hasSetting: boolean): TableBlock {
  return {
    ...tableOf(methods, [
      leftColumn('  method', 'method', (method) => ({
        text: `${method.current ? CURRENT_MARK : ' '} ${methodName(method)}`,
        tone: method.current ? 'strong' : 'plain',
      })),
      hasSetting && wrapColumn('setting', 'setting', (method) => methodSetting(method)),
      right('kept', 'kept', (method) => integerCell(method.counts.kept)),
      right('partly', 'partly', (method) => integerCell(method.counts.partly)),
      right('fully', 'fully', (method) => integerCell(method.counts.fully)),
      right('! unseen', 'extrapolated', (method) => ({
        ...integerCell(method.counts.extrapolated),
        tone: method.counts.extrapolated > 0 ? ('bad' as const) : ('plain' as const),
      })),
      right('amplitude', 'amplitude', (method) => method.amplitude.toFixed(4)),
    ]),
    ...(hasSetting && { narrower: methodTable(methods, false) }),
  };
}

/** Marks of the plot, and their colours. */
const MARKS = {
  plain: { mark: 'p', tone: 'hue1' },
  linear: { mark: 'l', tone: 'hue2' },
  ntk: { mark: 'n', tone: 'hue3' },
  yarn: { mark: 'y', tone: 'hue4' },
  llama3: { mark: '3', tone: 'hue5' },
  own: { mark: '*', tone: 'strong' },
} as const satisfies Record<RopeMethodId, { readonly mark: string; readonly tone: Tone }>;

const plotOf = ({ methods }: RopeRotary, { trained, context }: RopeAnalysis): PlotBlock => ({
  kind: 'plot',
  title: 'Wavelength in positions, over the frequencies',
  series: methods.map((method) => ({
    ...MARKS[method.id],
    label: method.current ? `${methodName(method)} (current)` : methodName(method),
    isOnTop: method.current,
    values: method.frequencies.map(({ wavelength }) => wavelength),
  })),
  levels: present([
    { mark: '-', label: `trained ${formatInteger(trained)}`, value: trained },
    context !== trained && {
      mark: '=',
      label: `context ${formatInteger(context)}`,
      value: context,
    },
  ]),
});

/** Level of detail of a cell, by available width. */
interface Detail {
  /** Whether to show wavelengths, in addition to their stretch. */
  readonly waves: boolean;
  readonly turns: boolean;
}

const DETAILS: readonly [Detail, ...Detail[]] = [
  { waves: true, turns: true },
  { waves: false, turns: true },
  { waves: false, turns: false },
];

/** The most detailed table, and its narrower variants. */
function frequencyTable(
  methods: readonly RopeMethod[],
  trained: number,
  [{ waves, turns }, ...others]: readonly [Detail, ...Detail[]] = DETAILS,
): TableBlock {
  const [plain, ...stretching] = methods;
  const columns: Column[] = [
    right('j', 'j'),
    right(plain ? methodTitle(plain) : '', 'plain'),
    ...(turns ? [right('turns', 'turns')] : []),
    ...stretching.map((method) => right(methodTitle(method), method.id)),
  ];
  const rows = (plain?.frequencies ?? []).map((frequency, j): Cell[] => [
    { text: String(j) },
    marked(inPositions(frequency), frequency, 'plain'),
    ...(turns ? [{ text: fixed(trained / frequency.wavelength, 3) }] : []),
    ...stretching.map(({ frequencies }) => changeCell(frequencies[j], waves)),
  ]);
  const [next, ...rest] = others;
  const narrower = next && frequencyTable(methods, trained, [next, ...rest]);
  return { kind: 'table', columns, rows, narrower };
}

const methodTitle = ({ id, current }: RopeMethod): string =>
  current ? `${CURRENT_MARK} ${NAMES[id]}` : NAMES[id];

const TONES = {
  kept: 'dim',
  partly: 'warning',
  fully: 'good',
} as const satisfies Record<RopeChange, Tone>;

function changeCell(frequency: RopeFrequency | undefined, hasWave: boolean): Cell {
  if (frequency === undefined) return { text: '' };
  const { change, stretch } = frequency;
  const by = change === 'kept' ? 'kept' : `×${stretch.toFixed(stretch < 100 ? 2 : 0)}`;
  const wave = hasWave ? `${inPositions(frequency)} ` : '';
  return marked(`${wave}${by.padStart(hasWave ? 6 : 0)}`, frequency, TONES[change]);
}

/** Extrapolated values have a mark that is visible without colours too; digits stay aligned. */
const marked = (text: string, { extrapolated }: RopeFrequency, tone: Tone): Cell => ({
  text: `${extrapolated ? '!' : ''}${text}`,
  tone: extrapolated ? 'bad' : tone,
});

const inPositions = ({ wavelength }: RopeFrequency): string => fixed(wavelength, 2);

/** A fixed number of decimals, so that digits are aligned. */
const fixed = (value: number, digits: number): string =>
  value >= 1000 ? decimals(value) : value.toFixed(digits);

/** `0.0123`, `6.28`, `1,234`, `1.23e+16`: three digits or more, whole numbers as they are. */
function decimals(value: number): string {
  if (value >= 1e15) return value.toPrecision(3);
  if (Number.isInteger(value) || value >= 1000) return formatInteger(Math.round(value));
  return String(Number(value.toPrecision(value < 1 ? 3 : 4)));
}

function ropeTable({ rotaries, trained }: RopeAnalysis): TableBlock {
  return {
    kind: 'table',
    columns: [
      'rotary',
      'layers',
      'method',
      'current',
      'frequency',
      'radians_per_position',
      'wavelength_positions',
      'turns_within_training',
      'stretch',
      'change',
      'extrapolated',
    ].map((key) => leftColumn(key, key)),
    rows: rotaries.flatMap(({ layers, methods }, rotary) =>
      methods.flatMap(({ id, current, frequencies }) =>
        frequencies.map((each, j) =>
          [
            rotary,
            layers,
            id,
            current,
            j,
            each.frequency,
            each.wavelength,
            trained / each.wavelength,
            each.stretch,
            each.change,
            each.extrapolated,
          ].map((value) => valueCell(value)),
        ),
      ),
    ),
  };
}
