/** How long a forward pass takes, and each of its parts, until what they compute is in the memory of the process. */
import type { HybridBlock, Layer } from '../architecture/layer.js';
import { widthAfter } from '../operations/lower.js';
import type { Program, RunInput, Values } from '../runtime/engine.js';
import type { Finding, PartTiming, Timing } from './finding.js';
import { formsOf } from './forms.js';
import type { Subject } from './subject.js';
import { integer } from './wording.js';

/** Seconds that are spent on timing when nobody says how often. */
const PATIENCE = 0.5;
const MOST_REPEATS = 20;
const FEWEST_REPEATS = 3;

export async function checkTiming(subject: Subject): Promise<Finding> {
  const whole = await timeWhole(subject);
  const parts = await timeParts(subject);
  const { mean, deviation } = whole;
  const { batch, tokens } = subject.ids;
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
    finding: `${integer(Math.round(timing.tokensPerSecond))} tokens/s`,
    measure: { what: 'mean seconds', value: mean },
    details: { timing },
  };
}

interface Timed {
  readonly seconds: readonly number[];
  readonly mean: number;
  /** Of one run there is none. */
  readonly deviation: number | null;
  readonly median: number;
}

/**
 * Times whole forward passes. Each ends when the logits are in the memory of the process: what a graphics
 * card has yet to compute is waited for. There the program is one that keeps no outputs of blocks, which
 * would be copied too and are no part of a forward pass; the program of the other checks leaves before.
 */
async function timeWhole(subject: Subject): Promise<Timed & { readonly loadSeconds: number }> {
  const { engine, model, ids, repeats } = subject;
  if (engine.info.deviceKind === 'cpu') {
    const whole = await timed(await subject.program(), { ids }, repeats);
    return { ...whole, loadSeconds: subject.loadSeconds };
  }
  await subject.unload();
  const start = performance.now();
  const timeOf = async (program: Program) => {
    const loadSeconds = (performance.now() - start) / 1000;
    return { loadSeconds, ...(await timed(program, { ids }, repeats)) };
  };
  return subject.with(model, timeOf, { blocks: false });
}

/** Runs a program once without a clock, then `repeats` times with one. */
export async function timed(
  program: Program,
  input: RunInput,
  repeats: number | undefined,
  patience = PATIENCE,
): Promise<Timed> {
  await program.run(input);
  const seconds: number[] = [];
  let spent = 0;
  const goesOn = () =>
    repeats === undefined
      ? seconds.length < FEWEST_REPEATS || (spent < patience && seconds.length < MOST_REPEATS)
      : seconds.length < repeats;
  while (goesOn()) {
    const start = performance.now();
    await program.run(input);
    seconds.push((performance.now() - start) / 1000);
    spent += seconds.at(-1) ?? 0;
  }
  const mean = seconds.reduce((sum, each) => sum + each, 0) / seconds.length;
  const squares = seconds.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  const sorted = seconds.toSorted((a, b) => a - b);
  return {
    seconds,
    mean,
    deviation: seconds.length > 1 ? Math.sqrt(squares / (seconds.length - 1)) : null,
    median: sorted[Math.floor(sorted.length / 2)] ?? 0,
  };
}

/** Seconds for each part. */
const PART_PATIENCE = 0.02;

/** One block is taken for all of its form: these differ in windows and in the values of their weights. */
async function timeParts(subject: Subject): Promise<PartTiming[]> {
  const { model, ids } = subject;
  const x = await subject.embedded(ids);
  const parts: Part[] = [
    { layer: model.embedding, input: { ids }, times: 1 },
    ...formsOf(model.blocks).flatMap(({ block, times }) =>
      partsOf(block, x).map((part) => ({
        ...part,
        // What the blocks share is computed once for all of them.
        times: model.shared.includes(part.layer) ? 1 : times,
      })),
    ),
    { layer: model.norm, input: { inputs: [x] }, times: 1 },
    { layer: model.head, input: { inputs: [x] }, times: 1 },
  ];
  const timings: PartTiming[] = [];
  for (const { layer, input, times } of parts) {
    const { median: seconds } = await subject.with(layer, (program) =>
      timed(program, input, undefined, PART_PATIENCE),
    );
    timings.push({ layer: layer.name, component: layer.component ?? 'other', times, seconds });
  }
  return timings;
}

interface Part {
  readonly layer: Layer;
  readonly input: RunInput;
  readonly times: number;
}

/** What a block consists of. Where the values come from does not matter for the time. */
function partsOf(block: Layer, x: Values): Omit<Part, 'times'>[] {
  return block.kind === 'hybridBlock'
    ? hybridParts(block, x)
    : plainParts(block, x.shape[2] ?? 0).map((layer) => ({ layer, input: { inputs: [x] } }));
}

/** The layers of branches, as far as they keep the width. */
function plainParts(layer: Layer, width: number): readonly Layer[] {
  if (layer.kind === 'residual') return layer.branches.flatMap((each) => plainParts(each, width));
  const parts = layer.kind === 'sequence' ? layer.layers : [];
  return parts.length > 0 && parts.every((each) => widthAfter(each, width) === width)
    ? parts.flatMap((each) => plainParts(each, width))
    : [layer];
}

function hybridParts(block: HybridBlock, x: Values): Omit<Part, 'times'>[] {
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
