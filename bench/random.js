// Fills of 10 million values by minimind/random beside the same by PyTorch, whose vectors of eight are out of reach
// of JavaScript. `PYTHON` names another Python than `python3`.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { compare } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const python = process.env.PYTHON || 'python3';
const script = `${root}bench/random_pytorch.py`;

export const title = 'Random numbers: 10 million values against PyTorch on one thread';

const pytorch = (fill) => {
  const { status, stdout } = spawnSync(python, [script, fill], { encoding: 'utf8' });
  return status === 0 ? Number(stdout) : undefined;
};

export async function run() {
  if (pytorch('uniform_') === undefined) return { skipped: 'PyTorch is not there' };
  const { manualSeed } = await import(new URL('../dist/base/random/index.js', import.meta.url));
  const generator = manualSeed(0);
  const values = new Float32Array(10 ** 7);
  const filled = (fill) => {
    const start = performance.now();
    generator[fill](values);
    return performance.now() - start;
  };
  const results = ['uniform', 'normal'].map((fill) => {
    filled(fill);
    return compare({
      name: fill,
      candidate: () => filled(fill),
      baseline: () => pytorch(`${fill}_`),
      rounds: 5,
    });
  });
  return { results };
}
