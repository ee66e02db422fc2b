// Forward passes of MiniMind2-Small over 1 × 4,096 and 1 × 16,384 tokens beside transformers, whose attention is
// PyTorch's own (`sdpa`), and the peak memory of both processes. Over 4,096 tokens also attention in blocks of queries
// against the same in one block, as all scores at once.
//
// PYTHON names a Python with PyTorch and transformers; LONG_ROUNDS (3) is the number of rounds beside transformers.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { asLlama, peakOf } from './decode.js';
import {
  compared,
  idsOf,
  openPyTorch,
  setting,
  source,
  THREADS,
  timeOf,
} from './forward-contenders.js';
import { figure, summary } from './measure.js';

const TOKENS = 4096;
const LONG = 4 * TOKENS;
/** Tokens of a first pass, in which libraries and threads start. */
const SHORT = 64;

export const title = `Long contexts: forward passes of MiniMind2-Small, threads: ${THREADS}`;

const PAIRS = [{ candidate: 'blocks', baseline: 'whole', aim: 1 }];
/** Largest time and peak memory, by those of transformers. */
const AIMS = { time: 1, memory: 1.5 };
const ROUNDS = setting('LONG_ROUNDS', 3);

async function opened() {
  const { loadFamily } = await source('model/architecture/families.ts');
  const { presetDocument } = await source('model/architecture/presets.ts');
  const { randomWeights } = await source('engine/weights/weights.ts');
  const { loadProgram } = await source('engine/onnx/onnx-engine.ts');
  const { ON_CPU } = await source('engine/onnx/context.ts');
  const family = await loadFamily('minimind');
  const document = presetDocument('minimind', 'minimind2-small');
  const model = family.build(family.schema.parse(document));
  const library = createRequire(import.meta.url)('onnxruntime-node');
  const settings = {
    executionProviders: ['cpu'],
    intraOpNumThreads: THREADS,
    logSeverityLevel: 4,
  };
  const program = (target) =>
    loadProgram({
      library,
      settings,
      layer: model,
      source: randomWeights(model, 0),
      loading: { blocks: false },
      target: { ...ON_CPU, ...target },
    });
  return { model, document, program };
}

export async function run() {
  const { model, document, program } = await opened();
  const contender = async (name, target) => {
    const own = await program(target);
    return {
      name,
      time: () => timeOf(() => own.run({ ids: idsOf(model, 1, TOKENS) })),
      close: () => own.release(),
    };
  };
  const results = await compared(
    {
      blocks: await contender('attention in blocks of queries', {}),
      whole: await contender('all scores at once', { queriesPerBlock: TOKENS }),
    },
    PAIRS,
  );
  const peaks = {};
  let transformers = 'not there';
  for (const tokens of [TOKENS, LONG]) {
    const { facts, time, peak } = await besideTransformers(tokens, document);
    transformers = facts;
    peaks[tokens] = peak;
    if (time === undefined) continue;
    const name = `1 × ${tokens} tokens against transformers`;
    const value = peak.ours / peak.transformers;
    results.push(
      summary({ name, times: time, aim: AIMS.time }),
      figure({ name: `${name}, peak memory`, value, unit: '×', aim: AIMS.memory }),
    );
  }
  const growth = peaks[LONG].ours / peaks[TOKENS].ours;
  return {
    threads: THREADS,
    transformers,
    peakMegabytes: peaks,
    growth: `${growth.toFixed(2)} × the memory for ${LONG / TOKENS} × the tokens`,
    results,
  };
}

/** Milliseconds of both in turns, each in a process of its own, and their peaks in MB; ours alone without transformers. */
async function besideTransformers(tokens, document) {
  const settings = { ...asLlama(document), max_position_embeddings: LONG };
  const peer = await openPyTorch({ script: 'transformers_peer.py', settings, threads: THREADS });
  const ours = Array.from({ length: peer.missing ? 1 : 0 }, () => passOf(tokens));
  const time = { candidate: [], baseline: [] };
  if (!peer.missing) {
    await peer.run({ batch: 1, tokens: SHORT });
    for (let round = 0; round < ROUNDS; round++) {
      ours.push(passOf(tokens));
      time.candidate.push(ours.at(-1).milliseconds);
      time.baseline.push(await peer.run({ batch: 1, tokens }));
    }
  }
  const peak = { ours: Math.max(...ours.map(({ peakMegabytes }) => peakMegabytes)) };
  if (peer.missing) return { facts: peer.missing, peak };
  peak.transformers = peakOf(peer.pid);
  peer.close();
  return { facts: peer.facts, time, peak };
}

/** A pass by a process of its own, which runs a short one before it. */
function passOf(tokens) {
  const words = [fileURLToPath(import.meta.url), `${tokens}`];
  return JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { model, program } = await opened();
  const own = await program({});
  await own.run({ ids: idsOf(model, 1, SHORT) });
  const ids = idsOf(model, 1, Number(process.argv[2]));
  const milliseconds = await timeOf(() => own.run({ ids }));
  console.log(JSON.stringify({ milliseconds, peakMegabytes: peakOf(process.pid) }));
  process.exit();
}
