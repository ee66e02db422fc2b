/**
 * Measures the time of a forward pass and of each of its parts, including the transfer of the results to the memory of
 * the process.
 */

import { sumOf } from '../../base/values.js';
import type { Program, RunInput, Values } from '../../engine/engine.js';
import { distinctBlocks } from '../../engine/memory.js';
import type { HybridBlock, Layer } from '../../model/architecture/layer.js';
import { widthAfter } from '../../model/operations/lower.js';
import type { CheckFinding, PartTiming, Timing } from '../finding.js';
import type { TestContext } from '../test-context.js';

/** Default seconds for timing. */
const DEFAULT_SECONDS = 0.5;
const MOST_REPEATS = 20;
const FEWEST_REPEATS = 3;

export async function checkTiming(context: TestContext): Promise<CheckFinding> {
  const whole = await timeWhole(context);
  const parts = await timeParts(context);
  const { mean, deviation } = whole;
  const { batch, tokens } = context.ids;
  const timing: Timing = {
    loadSeconds: whole.loadSeconds,
    warmUps: 1,
    repeats: whole.seconds.length,
    meanSeconds: mean,
    deviationSeconds: deviation,
    minSeconds: Math.min(...whole.seconds),
    medianSeconds: whole.median,
    tokensPerSecond: (batch * tokens) / mean,
    parts,
  };
  return {
    verdict: 'passed',
    finding: `${Math.round(timing.tokensPerSecond).toLocaleString('en-US')} tokens/s`,
    measure: { what: 'mean seconds', value: mean },
    details: { timing },
  };
}

interface Timed {
  readonly seconds: readonly number[];
  readonly mean: number;
  /** Null for a single run. */
  readonly deviation: number | null;
  readonly median: number;
}

/**
 * Times whole forward passes. Each ends when the logits are in the memory of the process, so it includes pending work
 * of a graphics card. The timed program keeps no block outputs, because copying them is not part of a forward pass. The
 * program of the other checks is released first.
 */
async function timeWhole(context: TestContext): Promise<Timed & { readonly loadSeconds: number }> {
  const { engine, model, ids, repeats } = context;
  if (engine.info.deviceKind === 'cpu') {
    const whole = await timed(await context.program(), { ids }, repeats);
    return { ...whole, loadSeconds: context.loadSeconds };
  }
  await context.unload();
  const start = performance.now();
  const timeOf = async (program: Program) => {
    const loadSeconds = (performance.now() - start) / 1000;
    return { loadSeconds, ...(await timed(program, { ids }, repeats)) };
  };
  return context.with(model, timeOf, { blocks: false });
}

/** Runs a program once without timing, then `repeats` times with timing. */
export async function timed(
  program: Program,
  input: RunInput,
  repeats: number | undefined,
  limitSeconds = DEFAULT_SECONDS,
): Promise<Timed> {
  await program.run(input);
  const seconds: number[] = [];
  let spent = 0;
  const goesOn = () =>
    repeats === undefined
      ? seconds.length < FEWEST_REPEATS || (spent < limitSeconds && seconds.length < MOST_REPEATS)
      : seconds.length < repeats;
  while (goesOn()) {
    const start = performance.now();
    await program.run(input);
    seconds.push((performance.now() - start) / 1000);
    spent += seconds.at(-1) ?? 0;
  }
  const mean = seconds.reduce((sum, each) => sum + each, 0) / seconds.length;
  const squares = sumOf(seconds, (each) => (each - mean) ** 2);
  const sorted = seconds.toSorted((a, b) => a - b);
  return {
    seconds,
    mean,
    deviation: seconds.length > 1 ? Math.sqrt(squares / (seconds.length - 1)) : null,
    median: sorted[Math.floor(sorted.length / 2)] ?? 0,
  };
}

/** Seconds of timing per part. */
const PART_SECONDS = 0.02;

/** Measures one block of each form: the others differ only in windows and weight values. */
async function timeParts(context: TestContext): Promise<PartTiming[]> {
  const { model, ids } = context;
  const x = await context.embedded(ids);
  const parts: TimedLayer[] = [
    { layer: model.embedding, input: { ids }, times: 1 },
    ...distinctBlocks(model.blocks).flatMap(({ block, times }) =>
      timedSublayers(block, x).map((part) => ({
        ...part,
        // Shared layers are computed once for all blocks.
        times: model.shared.includes(part.layer) ? 1 : times,
      })),
    ),
    { layer: model.norm, input: { inputs: [x] }, times: 1 },
    { layer: model.head, input: { inputs: [narrowed(x, model.norm)] }, times: 1 },
  ];
  const timings: PartTiming[] = [];
  for (const { layer, input, times } of parts) {
    const { median: seconds } = await context.with(layer, (program) =>
      timed(program, input, undefined, PART_SECONDS),
    );
    timings.push({ layer: layer.name, component: layer.component ?? 'other', times, seconds });
  }
  return timings;
}

/** Input for a layer after `layer`, with as many values per token: several streams of a token can become one. */
function narrowed(x: Values, layer: Layer): Values {
  const [batch = 1, tokens = 1, width = 0] = x.shape;
  const left = widthAfter(layer, width) ?? width;
  return left === width
    ? x
    : { shape: [batch, tokens, left], data: x.data.subarray(0, batch * tokens * left) };
}

interface TimedLayer {
  readonly layer: Layer;
  readonly input: RunInput;
  readonly times: number;
}

/** Parts of a block. The input values do not influence the time. */
function timedSublayers(block: Layer, x: Values): Omit<TimedLayer, 'times'>[] {
  return block.kind === 'hybridBlock'
    ? hybridParts(block, x)
    : plainParts(block, x.shape[2] ?? 0).map((layer) => ({ layer, input: { inputs: [x] } }));
}

/** Sublayers of a layer, as far as all of them keep the width. */
function plainParts(layer: Layer, width: number): readonly Layer[] {
  if (layer.kind === 'residual' || layer.kind === 'sum') {
    return layer.branches.flatMap((each) => plainParts(each, width));
  }
  const parts = layer.kind === 'sequence' ? layer.layers : [];
  return parts.length > 0 && parts.every((each) => widthAfter(each, width) === width)
    ? parts.flatMap((each) => plainParts(each, width))
    : [layer];
}

function hybridParts(block: HybridBlock, x: Values): Omit<TimedLayer, 'times'>[] {
  const { inputNorm, srte, mamba, attention, alignment, gate, fusion, mlp, outputNorm } = block;
  const onOne = (layer: Layer) => ({ layer, input: { inputs: [x] } });
  return [
    onOne(inputNorm),
    { layer: srte, input: { tokens: x.shape[1] ?? 0 } },
    onOne(mamba),
    onOne(attention),
    ...(alignment ? [{ layer: alignment, input: { inputs: [x, x] } }] : []),
    onOne(gate),
    onOne(fusion),
    onOne(mlp),
    onOne(outputNorm),
  ];
}
