// A forward pass of MiniMind2-Small over 1 × 4,096 tokens: attention in blocks of queries against the same in one block,
// as all scores at once; and the peak memory of a process of its own, for 4,096 and 16,384 tokens, whose ratio shows how
// memory grows with the context.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { compared, idsOf, source, THREADS, timeOf } from './forward-contenders.js';

const TOKENS = 4096;
const LONG = 4 * TOKENS;

export const title = `Long contexts: forward pass of MiniMind2-Small, 1 × ${TOKENS} tokens, threads: ${THREADS}`;

const PAIRS = [{ candidate: 'blocks', baseline: 'whole', aim: 1 }];

async function opened() {
  const { loadFamily } = await source('model/architecture/families.ts');
  const { presetDocument } = await source('model/architecture/presets.ts');
  const { randomWeights } = await source('engine/weights/weights.ts');
  const { load } = await source('engine/onnx/onnx-engine.ts');
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
    load({
      library,
      settings,
      layer: model,
      source: randomWeights(model, 0),
      loading: { blocks: false },
      target: { ...ON_CPU, ...target },
    });
  return { model, program };
}

/** Peak bytes of a process that loads the model and runs it once. */
function peakBytes(tokens) {
  const words = [fileURLToPath(import.meta.url), `${tokens}`];
  return Number(execFileSync(process.execPath, words, { encoding: 'utf8' }));
}

export async function run() {
  const { model, program } = await opened();
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
  const [short, long] = [peakBytes(TOKENS), peakBytes(LONG)];
  return {
    threads: THREADS,
    peakBytes: { [TOKENS]: short, [LONG]: long },
    growth: `${(long / short).toFixed(2)} × the memory for ${LONG / TOKENS} × the tokens`,
    results,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const tokens = Number(process.argv[2]);
  const { model, program } = await opened();
  await (await program({})).run({ ids: idsOf(model, 1, tokens) });
  console.log(process.resourceUsage().maxRSS * 1024);
  process.exit();
}
