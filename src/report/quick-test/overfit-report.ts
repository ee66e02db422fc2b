/** Report of `minimind quick-test --overfit`: whether the model learns one batch, and the curve of its loss. */

import { setting } from '../../base/text/setting.js';
import { formatInteger, formatSeconds, shortNumber } from '../../base/text/units.js';
import { counted, modelName, sentence } from '../../base/text/words.js';
import type { SettingSource, SourcedSetting } from '../../check/overfit/judge.js';
import type { Overfit } from '../../check/overfit/overfit.js';
import type { OverfitResult } from '../../check/quick-test-result.js';
import { engineText } from '../doctor-report.js';
import type { LinePlotBlock } from '../kit/pictures.js';
import type { Block, Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import {
  headingBlock,
  integerCell,
  noteOf,
  realCell,
  right,
  tableOf,
  valueCell,
} from '../kit/report.js';
import { proxyBlocks } from './quick-test-report.js';

export function overfitReport(result: OverfitResult): Report {
  const { overfit } = result;
  const { problems, warnings } = overfit;
  return {
    verdict: overfitVerdict(result),
    blocks: [
      {
        kind: 'facts',
        facts: [
          ...problems.map(
            ({ message, suggestion }): Fact => ({
              name: 'problem',
              text: `${message}; ${suggestion}`,
              tone: 'bad',
            }),
          ),
          ...warnings.map((text): Fact => ({ name: 'warning', text, tone: 'warning' })),
          ...overfitFacts(result),
        ],
      },
      ...(overfit.steps.length > 1 ? [lossPlot(overfit)] : []),
    ],
    details: [
      ...sweepBlocks(overfit),
      ...proxyBlocks(
        overfit.twin,
        `${setting('full')} trains the model itself, at any size that memory holds.`,
      ),
      headingBlock('Steps'),
      overfitSteps(overfit),
      ...notes(),
    ],
    data: overfitSteps(overfit),
  };
}

const lossText = (loss: number) =>
  Number.isFinite(loss) ? shortNumber(Number(loss.toPrecision(3))) : 'NaN';

function overfitVerdict({ file, overfit }: OverfitResult): Verdict {
  const { steps, finalLoss, uniformLoss, problems, passed, twin, firstNonFinite } = overfit;
  const from = lossText(steps[0]?.loss ?? Number.NaN);
  const name = `${modelName(file)}${twin ? ' (scaled-down proxy)' : ''}`;
  const uniform = `uniform guess ${lossText(uniformLoss)}`;
  const isLearning = problems.every(({ kind }) => kind === 'dead parameter');
  const many = counted(steps.length, 'step');
  const text = isLearning
    ? `loss fell from ${from} to ${lossText(finalLoss)} in ${many} (${uniform})`
    : firstNonFinite
      ? `loss ${from} at first, NaN or infinity at step ${firstNonFinite.step} (${uniform})`
      : `loss did not fall: ${from} at first, ${lossText(finalLoss)} after ${many} (${uniform})`;
  const dead = problems.some(({ kind }) => kind === 'dead parameter') ? ', dead parameters' : '';
  return {
    text: `${name}: ${passed ? '' : 'FAILED: '}${text}${dead}`,
    tone: passed ? 'good' : 'bad',
  };
}

const SOURCES = {
  flag: '',
  file: ' (file)',
  default: ' (default)',
} as const satisfies Record<SettingSource, string>;

const sourcedText = ({ value, source }: SourcedSetting) =>
  `${shortNumber(value)}${SOURCES[source]}`;

function overfitFacts({ family, checkpoint, overfit }: OverfitResult): Fact[] {
  const { twin, parameters, weights, seed, batch, context, ids, settings, steps } = overfit;
  const seeded = `seed ${seed}`;
  const lost = checkpoint && weights === 'random' ? ', not the checkpoint' : '';
  const norms = steps.map(({ gradientNorm }) => gradientNorm);
  const highest = norms.reduce((most, each) => Math.max(most, each), 0);
  const clipped = steps.filter((each) => each.clipped).length;
  const { max_grad_norm: limit } = settings;
  return [
    {
      name: 'model',
      text: [
        family,
        twin
          ? `proxy of ${counted(twin.parameters, 'parameter')} for ${formatInteger(parameters)}`
          : counted(parameters, 'parameter'),
        weights === 'checkpoint' ? `weights of ${checkpoint}` : `random weights (${seeded})${lost}`,
      ].join(', '),
    },
    {
      name: 'batch',
      text: `${formatInteger(batch)} × ${formatInteger(context)} ${ids} tokens${ids === 'random' ? ` (${seeded})` : ''}, the same in every step`,
    },
    {
      name: 'optimizer',
      text:
        `AdamW, learning rate ${sourcedText(settings.learning_rate)}, betas ${settings.beta1.value}/${settings.beta2.value}, ` +
        `eps ${shortNumber(settings.eps.value)}, weight decay ${sourcedText(settings.weight_decay)}`,
    },
    {
      name: 'gradients',
      text:
        `norm ${lossText(norms[0] ?? Number.NaN)} at first, ${lossText(highest)} at most; ` +
        (limit.value === 0
          ? 'no clipping'
          : `clipped to ${sourcedText(limit)} in ${clipped} of ${counted(steps.length, 'step')}`) +
        (overfit.deadParameters.length === 0 && overfit.firstNonFinite === null
          ? `; all ${counted(overfit.trainedTensors, 'tensor')} learn`
          : ''),
    },
    { name: 'learning rate', text: sweepText(overfit) },
    { name: 'time', text: `${formatSeconds(overfit.seconds)}, ${engineText(overfit.engine)}` },
  ];
}

function sweepText({ learningRates, twin }: Overfit): string {
  if (!learningRates) return `no sweep: time was up; more with ${setting('seconds')}`;
  const { lowestAt, suggested, risesFrom } = learningRates;
  return (
    `suggested ${shortNumber(suggested)}: a tenth of ${shortNumber(lowestAt)}, where a sweep has its lowest loss` +
    (risesFrom === null ? '' : `; the loss rises from ${shortNumber(risesFrom)}`) +
    (twin ? '. Wider models need less' : '')
  );
}

/** Rows of the plot, with and without problems: the answer fits on a screen. */
const PLOT_ROWS = { short: 3, usual: 6 } as const;

const lossPlot = ({ steps, finalLoss, problems, warnings }: Overfit): LinePlotBlock => ({
  kind: 'line plot',
  title: 'Loss by step',
  x: {},
  y: { from: 0 },
  curves: [
    {
      label: 'loss',
      tone: 'good',
      points: [...steps.map(({ loss }) => loss), finalLoss].map((loss, step) => [step, loss]),
    },
  ],
  rows: problems.length + warnings.length > 0 ? PLOT_ROWS.short : PLOT_ROWS.usual,
});

function sweepBlocks({ learningRates }: Overfit): Block[] {
  if (!learningRates) return [];
  const { points } = learningRates;
  return [
    headingBlock('Sweep of learning rates'),
    {
      kind: 'line plot',
      title: 'Loss by learning rate',
      x: { scale: 'log' },
      y: { from: 0 },
      curves: [
        {
          label: 'loss after an update',
          tone: 'good',
          points: points.map(({ learningRate, loss }) => [learningRate, loss]),
        },
      ],
    },
    tableOf(points, [
      right('learning rate', 'learning_rate', ({ learningRate }) =>
        valueCell(learningRate, shortNumber),
      ),
      right('loss', 'loss', ({ loss }) => realCell(loss)),
    ]),
  ];
}

const overfitSteps = ({ steps: made }: Overfit): TableBlock =>
  tableOf(made, [
    right('step', 'step', (_, index) => integerCell(index + 1)),
    right('loss', 'loss', ({ loss }) => realCell(loss)),
    right('gradient norm', 'gradient_norm', ({ gradientNorm }) => realCell(gradientNorm)),
    right('clipped', 'clipped', ({ clipped }) => ({
      text: clipped ? 'yes' : 'no',
      value: clipped,
    })),
  ]);

const notes = (): Block[] =>
  [
    'the loss is the mean cross-entropy of the next token in nats, before the update of the step',
    'the learning rate is constant: no warm-up, no schedule',
    'there is no dropout, no noise of routers and no auxiliary loss; weight decay applies to all tensors; all values are float32',
    'the sweep starts again from the same weights, and its learning rate grows by a constant factor',
  ].map((text) => noteOf(sentence(text)));
