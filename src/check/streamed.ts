/**
 * Checks of a model larger than the memory, which runs layer by layer. One pass serves all of them: sequences with a
 * changed token are additional rows of the batch.
 */

import { formatInteger } from '../base/text/units.js';
import { counted } from '../base/text/words.js';
import { isAllFinite, rowAt } from '../engine/compare/differences.js';
import type { RunOutput, TokenIds, Values } from '../engine/engine.js';
import { runLayerByLayer } from '../engine/layer-by-layer.js';
import { neededTensors, parameterElements } from '../engine/memory.js';
import { idLimitsOf, pickRows, withOtherToken } from '../engine/token-ids.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import { causalityTrial, judgeTrials, positionsToTry, usualLeak } from './checks/causality.js';
import { judgeElements } from './checks/created.js';
import { judgeLogits, notComparable, originIn } from './checks/forward.js';
import type { CheckName, CheckResult } from './checks.js';
import { type CheckFinding, type NonFiniteOrigin, skipped } from './finding.js';
import type { TestContext } from './test-context.js';

export interface StreamedTest {
  readonly results: readonly CheckResult[];
  readonly output: Pick<RunOutput, 'output' | 'blocks'>;
}

interface StreamedOptions {
  readonly checks: readonly CheckName[];
  /** Whether to return the output of every block. */
  readonly keepsBlocks: boolean;
  /** Whether memory suffices for this number of additional rows. */
  readonly roomFor: (rows: number) => boolean;
  /** Called with each layer before it is loaded. */
  readonly watch: (layer: string) => void;
}

export async function streamedTest(
  context: TestContext,
  { checks, keepsBlocks, roomFor, watch }: StreamedOptions,
): Promise<StreamedTest> {
  const { ids } = context;
  const wished = checks.includes('causality') ? positionsToTry(ids.tokens) : [];
  const tried = wished.filter((_, index) => roomFor(index + 1));
  const pass = await onePass(context, withTrials(context, tried), { keepsBlocks, watch });
  const own = { ...pass, logits: rows(pass.logits, 0, ids.batch) };
  const findings: Partial<Record<CheckName, () => CheckFinding | Promise<CheckFinding>>> = {
    created: () => pass.created,
    forward: () => judgeLogits(context, own.logits, async () => pass.origin),
    causality: () =>
      wished.length > 0 && tried.length === 0
        ? NO_ROOM
        : (notComparable(own.logits) ??
          judgeTrials(
            trialsOf(pass.logits, ids, tried),
            context.model,
            usualLeak(context, own.logits),
          )),
    timing: () => timingOf(pass, ids, tried.length),
  };
  const results: CheckResult[] = [];
  // All checks share one pass, whose time counts for the first check.
  let spent = pass.loadSeconds + pass.runSeconds;
  for (const check of checks) {
    const judge = findings[check];
    if (!judge) {
      results.push({ check, ...NOT_STREAMED, seconds: 0 });
      continue;
    }
    const start = performance.now();
    const finding = await judge();
    results.push({ check, ...finding, seconds: spent + (performance.now() - start) / 1000 });
    spent = 0;
  }
  const blocks = new Map(
    [...pass.blocks].map(([name, value]) => [name, rows(value, 0, ids.batch)] as const),
  );
  return { results, output: { output: own.logits, blocks } };
}

const NO_ROOM = skipped('no memory for another row with a changed token');
const NOT_STREAMED = skipped('it takes the whole model in memory at a time');

/** The ids, followed by their first row with another token for each position. */
function withTrials({ ids, model }: TestContext, tried: readonly number[]): TokenIds {
  const first = pickRows(ids, [0]);
  const more = tried.map((position) => withOtherToken(first, position, idLimitsOf(model)));
  const data = Int32Array.from([ids, ...more].flatMap((each) => [...each.data]));
  return { batch: ids.batch + tried.length, tokens: ids.tokens, data };
}

const trialsOf = (logits: Values, { batch }: TokenIds, tried: readonly number[]) =>
  tried.map((position, index) =>
    causalityTrial(rows(logits, 0, 1), rows(logits, batch + index, 1), position),
  );

/** A range of rows of a value [B, …]. */
function rows(value: Values, first: number, count: number): Values {
  const size = rowAt(value, 0).length;
  return {
    shape: value.shape.with(0, count),
    data: value.data.subarray(first * size, (first + count) * size),
  };
}

interface StreamedPass {
  readonly created: CheckFinding;
  readonly logits: Values;
  readonly blocks: ReadonlyMap<string, Values>;
  readonly origin: NonFiniteOrigin | undefined;
  readonly loadSeconds: number;
  readonly runSeconds: number;
}

async function onePass(
  context: TestContext,
  ids: TokenIds,
  { keepsBlocks, watch }: Pick<StreamedOptions, 'keepsBlocks' | 'watch'>,
): Promise<StreamedPass> {
  const { engine, model, weights } = context;
  const findings: CheckFinding[] = [];
  const seconds = { load: 0, run: 0 };
  let origin: NonFiniteOrigin | undefined;
  const { output, blocks } = await runLayerByLayer({
    ...{ engine, model, weights, ids, keepsBlocks, watch },
    after: async ({ layer, input, output: value, elements, loadSeconds, runSeconds }) => {
      seconds.load += loadSeconds;
      seconds.run += runSeconds;
      findings.push(inLayer(layer.name, judgeElements(layer, elements)));
      if (!origin && !isAllFinite(value)) origin = await originIn(context, layer, input);
    },
  });
  return {
    created: judgeLayers(findings, model),
    logits: output,
    blocks,
    origin,
    loadSeconds: seconds.load,
    runSeconds: seconds.run,
  };
}

const inLayer = (name: string, finding: CheckFinding): CheckFinding => ({
  ...finding,
  finding: `in ${name}, ${finding.finding}`,
});

/** Combined finding for all layers: each layer receives a shared tensor, which counts once. */
function judgeLayers(findings: readonly CheckFinding[], model: LanguageModel): CheckFinding {
  const wrong = findings.find(({ verdict }) => verdict === 'failed');
  if (wrong) return wrong;
  const { finding, measure } = judgeElements(model, parameterElements(neededTensors(model)));
  return {
    verdict: 'passed',
    finding: `${finding}, in ${counted(findings.length, 'layer')} one after the other`,
    ...(measure && { measure }),
  };
}

/** @param trials Number of additional rows in the run. */
function timingOf(
  { loadSeconds, runSeconds }: StreamedPass,
  { batch, tokens }: TokenIds,
  trials: number,
): CheckFinding {
  const rows = batch + trials;
  const speed = Math.round((rows * tokens) / runSeconds).toLocaleString('en-US');
  return {
    verdict: 'passed',
    finding: `one pass of ${rows} × ${formatInteger(tokens)} tokens: ${loadSeconds.toFixed(1)} s to load the layers, ${runSeconds.toFixed(1)} s to run them, ${speed} tokens/s`,
    measure: { what: 'seconds', value: loadSeconds + runSeconds },
  };
}
