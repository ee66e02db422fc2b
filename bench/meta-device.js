// The same count by the tool that people have at hand: PyTorch, with the model on its meta device, which
// allocates nothing. `PYTHON` names another Python than `python3`.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { compare, timeCommand } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const python = process.env.PYTHON || 'python3';
const script = `${root}bench/meta_device.py`;
const profile = [`${root}bin/run.js`, 'profile', `${root}configs/hybrid/original.yaml`];
const EXPECTED = 22_143_967_232;

/** Prints the most memory that a Node process has held, in KiB, when it ends. */
const TELL_MEMORY = `data:text/javascript,${encodeURIComponent(
  "process.on('exit', () => process.stderr.write(String(process.resourceUsage().maxRSS)))",
)}`;

export const title = "Counting: `minimind profile original.yaml` against PyTorch's meta device";

export function run() {
  const found = spawnSync(python, ['-c', 'import torch; print(torch.__version__)'], {
    encoding: 'utf8',
  });
  if (found.status !== 0) return { skipped: 'PyTorch is not there' };
  const peaks = checked();
  const result = compare({
    name: 'minimind profile original.yaml',
    candidate: () => timeCommand([process.execPath, ...profile]),
    baseline: () => timeCommand([python, script]),
    aim: 1 / 15,
    rounds: 10,
  });
  return { pytorch: found.stdout.trim(), ...peaks, results: [result] };
}

/** The peaks of memory of both. Throws when they disagree: then they do not do the same. */
function checked() {
  const ours = succeed(process.execPath, ['--import', TELL_MEMORY, ...profile, '--json']);
  const theirs = succeed(python, [script, '--memory']);
  const counts = [JSON.parse(ours.stdout).parameters.total.value, Number(theirs.stdout)];
  if (counts.some((count) => count !== EXPECTED)) throw new Error(`counted ${counts.join(', ')}`);
  const [mebibytes, mebibytesOfPyTorch] = [ours, theirs].map(({ stderr }) =>
    Math.round(Number(stderr) / 1024),
  );
  return { peakMebibytes: { minimind: mebibytes, pytorch: mebibytesOfPyTorch } };
}

function succeed(program, args) {
  const result = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (result.status !== 0) throw new Error(`${program}: ${result.status}\n${result.stderr}`);
  return result;
}
