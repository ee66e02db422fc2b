/**
 * Feeds of a program (see feeds.ts), computed in the graph itself for a whole forward pass. Shapes: T tokens of each
 * sequence. All integers are int64.
 */
import type { Rotary, RotaryScaling, Window } from '../../model/architecture/layer.js';
import { LARGEST_BLOCK, LONGEST_SLIDING_CONTEXT, reachOf } from '../../model/architecture/masks.js';
import { amplitudeOf, rotaryFrequencies } from '../../model/architecture/rotary-scaling.js';
import type { GraphContext } from './context.js';
import type { Feed } from './feeds.js';
import type { GraphValue } from './graph.js';

type Making = Pick<GraphContext, 'graph' | 'once'>;

/** The value of a feed. @param ids Token ids [B, T]. */
export function madeInGraph(making: Making, ids: GraphValue, feed: Feed): GraphValue {
  switch (feed.kind) {
    case 'ids':
      return ids;
    case 'positions':
    case 'keyPositions':
      return positions(making, ids);
    case 'frequencies':
      return frequencies(making, tokensOf(making, ids), feed.rotary);
    case 'amplitude':
      return amplitude(making, tokensOf(making, ids), feed.rotary);
    case 'firstKeys':
      return firstKeys(making, ids, feed.window);
    case 'value':
    case 'droppedKeys':
    case 'state':
    case 'pastRows':
    case 'keyCounts':
    case 'firstNeeded':
      throw new Error(`a whole forward pass of token ids has no ${feed.kind}`);
  }
}

/** T, without dimensions. */
const tokensOf = ({ graph, once }: Making, ids: GraphValue): GraphValue =>
  once('tokens', () =>
    graph.op('Squeeze', [
      graph.op('Shape', [ids], { attributes: { start: 1, end: 2 } }),
      graph.ints(0),
    ]),
  );

/** 0, 1, … [T] */
const positions = (making: Making, ids: GraphValue): GraphValue =>
  making.once('positions', () => {
    const { graph } = making;
    return graph.op('Range', [graph.int(0), tokensOf(making, ids), graph.int(1)]);
  });

/** First visible keys by the rule of `firstVisibleKey` in model/architecture/masks.ts, [T]. */
function firstKeys(making: Making, ids: GraphValue, window: Window | undefined): GraphValue {
  const { graph } = making;
  const own = positions(making, ids);
  const zeros = graph.op('Sub', [own, own]);
  if (window === undefined) return zeros;
  const reach = graph.int(reachOf(window));
  const before = (from: GraphValue) =>
    graph.op('Max', [graph.op('Sub', [from, reach]), graph.int(0)]);
  if (window.rule === 'sliding') return before(own);
  if (window.rule === 'chunked') {
    return graph.op('Sub', [own, graph.op('Mod', [own, graph.int(window.tokens)])]);
  }
  const tokens = tokensOf(making, ids);
  const block = graph.int(Math.min(window.tokens, LARGEST_BLOCK));
  const blockStart = graph.op('Sub', [own, graph.op('Mod', [own, block])]);
  const isSliding = graph.op('Less', [graph.int(window.tokens), tokens]);
  const isByBlock = graph.op('Greater', [tokens, graph.int(LONGEST_SLIDING_CONTEXT)]);
  const short = graph.op('Where', [isSliding, before(own), zeros]);
  return graph.op('Where', [isByBlock, before(blockStart), short]);
}

/**
 * Frequencies by the rule of `rotaryFrequencies` in model/architecture/rotary-scaling.ts for rules that depend on T,
 * [rotatedDim / 2].
 */
function frequencies(making: Making, tokens: GraphValue, rotary: Rotary): GraphValue {
  const { graph } = making;
  const { scaling } = rotary;
  switch (scaling?.kind) {
    case 'dynamic':
      return dynamicFrequencies(making, tokens, rotary, scaling);
    case 'longrope': {
      const { originalPositions } = scaling;
      const [short, long] = [originalPositions, originalPositions + 1].map((length) =>
        graph.floats(
          `frequencies:${length}:${JSON.stringify(rotary)}`,
          rotaryFrequencies(rotary, length),
        ),
      ) as [GraphValue, GraphValue];
      const isLong = graph.op('Greater', [tokens, graph.int(originalPositions)]);
      return graph.op('Where', [isLong, long, short]);
    }
    case 'linear':
    case 'proportional':
    case 'reordered':
    case 'llama3':
    case 'yarn':
    case 'earlyYarn':
    case undefined:
      throw new Error(`${scaling?.kind ?? 'plain'} frequencies do not depend on the length`);
  }
}

/** Factor of cosine and sine by the rule of `amplitudeOf`, [1]. */
function amplitude({ graph }: Making, tokens: GraphValue, rotary: Rotary): GraphValue {
  const { scaling } = rotary;
  if (scaling?.kind !== 'longrope') throw new Error('one factor for every length');
  const { originalPositions } = scaling;
  const [short, long] = [originalPositions, originalPositions + 1].map((length) =>
    graph.floats(
      `amplitude:${length}:${JSON.stringify(rotary)}`,
      Float32Array.of(amplitudeOf(rotary, length)),
    ),
  ) as [GraphValue, GraphValue];
  return graph.op('Where', [
    graph.op('Greater', [tokens, graph.int(originalPositions)]),
    long,
    short,
  ]);
}

/** Frequencies of a base that grows with the length, in double precision up to the last power, as in JavaScript. */
function dynamicFrequencies(
  { graph }: Making,
  tokens: GraphValue,
  { base, rotatedDim, isBackwards }: Rotary,
  { factor, originalPositions }: Extract<RotaryScaling, { kind: 'dynamic' }>,
): GraphValue {
  const length = graph.cast(graph.op('Max', [tokens, graph.int(originalPositions)]), 'f64');
  const share = graph.op('Div', [
    graph.op('Mul', [length, graph.doubles(factor)]),
    graph.doubles(originalPositions),
  ]);
  const stretch = graph.op('Sub', [share, graph.doubles(factor - 1)]);
  const power = graph.op('Pow', [stretch, graph.doubles(rotatedDim / (rotatedDim - 2))]);
  const exponents = Array.from({ length: rotatedDim / 2 }, (_, pair) =>
    Math.fround((2 * pair) / rotatedDim),
  );
  const grown = graph.op('Mul', [power, graph.doubles(base)]);
  const powers = graph.op('Pow', [grown, graph.doubles(...exponents)]);
  const forwards = graph.op('Reciprocal', [graph.cast(powers, 'f32')]);
  return isBackwards ? graph.op('Neg', [forwards]) : forwards;
}
