/** The figures of the answers: the main ones, one for each tile of the page, and the facts. */
import {
  dtypeWord,
  formatBytes,
  formatFlops,
  formatInteger,
  formatSeconds,
  shortCount,
  significant,
} from '../base/text/units.js';
import type { FitResult } from '../estimate/fit/fits.js';
import type { FitVerdict } from '../estimate/fit/training/training-fit.js';
import type { ProfileResult } from '../report/command-results.js';
import type { Fact, Report } from '../report/kit/report.js';

/** A figure for people, and its value for comparisons. */
export interface Tile {
  readonly label: string;
  readonly text: string;
  /** Addition to the figure: the unit, or the part that is meant. */
  readonly note: string;
  /** Absent where there is nothing to compare. */
  readonly value?: number;
  readonly verdict?: FitVerdict;
}

/** The facts of a report; none for an error. */
export const factsOf = (report: Report | undefined): readonly Fact[] =>
  (report?.blocks ?? []).flatMap((block) => (block.kind === 'facts' ? block.facts : []));

/** Figures of `profile`. */
export function profileTiles({
  parameters,
  inference,
  setting,
  forwardFlops,
  layerCount,
  weights,
}: ProfileResult): Tile[] {
  const { total, active } = parameters;
  const { context, batch, dtype } = setting.inference;
  const tokens = context * batch;
  const isSparse = active.value !== total.value;
  const cache = Number(inference.state.total.value);
  const flops = Math.round(Number(forwardFlops.total.value) / tokens);
  return [
    {
      label: 'Parameters',
      text: shortCount(total.value),
      note: isSparse
        ? `${shortCount(active.value)} active for a token`
        : `${formatInteger(layerCount)} layers`,
      value: Number(total.value),
    },
    {
      label: 'Weights',
      text: formatBytes(inference.weights.value),
      note: dtypeWord(weights?.dtype ?? dtype),
      value: Number(inference.weights.value),
    },
    {
      label: 'KV cache and states',
      text: formatBytes(cache),
      note: `${formatInteger(batch)} × ${formatInteger(context)} tokens`,
      value: cache,
    },
    {
      label: 'Compute',
      text: formatFlops(flops),
      note: 'per token of a forward pass',
      value: flops,
    },
  ];
}

/** Figures of `fit`. */
export function fitTiles({ serving, training, memory }: FitResult): Tile[] {
  const tiles: Tile[] = [];
  if (serving) {
    const { fit, users, setting } = serving;
    const needed = Math.round(fit.total.expected.value);
    tiles.push({
      label: 'Serving memory',
      text: formatBytes(needed),
      note: `of ${formatBytes(memory.usableBytes)}${setting.tensorParallel > 1 ? ' a GPU' : ''}`,
      value: needed,
      verdict: fit.verdict,
    });
    const count = Number(users.total.expected.value);
    tiles.push({
      label: 'Users at a time',
      text: formatInteger(count),
      note: `with ${formatInteger(setting.context)} tokens each`,
      value: count,
    });
    const speed = fit.decode?.tokensPerSecond.expected.value;
    if (speed !== undefined && fit.verdict !== 'does not fit') {
      tiles.push({
        label: 'Speed',
        text: `${significant(Number(speed))} tokens/s`,
        note: `one user, limited by ${fit.decode?.limitedBy ?? 'the measurement'} (estimate)`,
        value: Number(speed),
      });
    }
  }
  if (training) tiles.push(trainingTile(training));
  return tiles;
}

function trainingTile({ fit, setting }: NonNullable<FitResult['training']>): Tile {
  const needed = Math.round(fit.total.expected.value);
  const speed = fit.step && Number(fit.step.tokensPerSecond.value);
  const seconds = fit.time && Number(fit.time.totalSeconds.expected.value);
  const isFast = speed && fit.verdict !== 'does not fit';
  return {
    label: 'Training memory',
    text: formatBytes(needed),
    note: isFast
      ? `${shortCount(Math.round(speed))} tokens/s${seconds ? `, ${formatSeconds(seconds)} in total` : ''} (estimate)`
      : `${setting.optimizer}, ${setting.precision} precision`,
    value: needed,
    verdict: fit.verdict,
  };
}
