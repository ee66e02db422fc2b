/** Runs of embeddings: one table, and a table split over ranks. */
import {
  type BlockRun,
  type BlockSizes,
  countOf,
  done,
  Inputs,
  productOf,
  same,
} from './block-run.js';
import {
  initialParallelTable,
  initialTable,
  parallelVocabEmbedding,
  vocabEmbedding,
} from './embedding-modules.js';
import { cast, tensor, toFloat32 } from './tensor.js';

const tableLine = (rows: number, { hidden, initMean, initStd }: BlockSizes) =>
  initMean === 0 && initStd === 1
    ? `torch.randn(${rows}, ${hidden})`
    : `torch.empty(${rows}, ${hidden}).normal_(${initMean}, ${initStd})`;

const embeddingTable = ({ vocab, hidden, initMean, initStd, initSeed }: BlockSizes) => ({
  ...{ vocabSize: vocab, width: hidden },
  ...{ mean: initMean, deviation: initStd, seed: initSeed },
});

export function runVocabEmbedding(sizes: BlockSizes): BlockRun {
  const { batch, tokens, vocab, hidden, seed, initSeed, dtype } = sizes;
  const inputs = new Inputs(sizes);
  inputs.seed(seed);
  const ids = inputs.randint('ids', [batch, tokens], vocab);
  countOf([vocab, hidden]);
  inputs.seed(initSeed);
  const table = inputs.made('table', initialTable(embeddingTable(sizes)), tableLine(vocab, sizes));
  const y = vocabEmbedding(ids, table);
  inputs.output('y', y);
  const values = toFloat32(table);
  const product = new Float32Array(ids.data.length * hidden);
  for (const [at, id] of ids.data.entries()) {
    for (let row = 0; row < vocab; row++) {
      for (let i = 0; i < hidden; i++) {
        const place = at * hidden + i;
        product[place] =
          (product[place] ?? 0) + (row === id ? 1 : 0) * (values[row * hidden + i] ?? 0);
      }
    }
  }
  return done(inputs, [
    same('one-hot rows times the table', y, cast(tensor(y.shape, product), dtype), 0),
  ]);
}

export function runParallelEmbedding(sizes: BlockSizes): BlockRun {
  const { batch, tokens, vocab, hidden, ranks, seed, initSeed } = sizes;
  const inputs = new Inputs(sizes);
  inputs.seed(seed);
  const ids = inputs.randint('ids', [batch, tokens], vocab);
  countOf([vocab, hidden]);
  const tables = Array.from({ length: ranks }, (_, rank) => {
    const place = { rank, worldSize: ranks };
    const made = initialParallelTable(embeddingTable(sizes), place);
    inputs.seed(initSeed + rank);
    return inputs.made(`table${rank}`, made, tableLine(vocab / ranks, sizes));
  });
  const parts = tables.map((table, rank) => {
    const part = parallelVocabEmbedding(ids, table, { rank, worldSize: ranks });
    inputs.output(`y${rank}`, part);
    return toFloat32(part);
  });
  const shape = [...ids.shape, hidden];
  const sum = new Float32Array(productOf(shape)).map((_, at) =>
    parts.reduce((total, part) => total + (part[at] ?? 0), 0),
  );
  const whole = tensor(
    [vocab, hidden],
    tables.flatMap((table) => Array.from(toFloat32(table))),
  );
  const y = tensor(shape, sum);
  inputs.output('sum', cast(y, sizes.dtype));
  return done(inputs, [
    same('sum over the ranks = embedding with the whole table', y, vocabEmbedding(ids, whole), 0),
  ]);
}
