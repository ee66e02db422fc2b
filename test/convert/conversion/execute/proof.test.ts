import path from 'node:path';
import { expect, it } from 'vitest';
import { openCheckpoint } from '../../../../src/checkpoint/open.js';
import { progressDisplay } from '../../../../src/cli/progress.js';
import type { ProofJob } from '../../../../src/convert/conversion/execute/check-output.js';
import { prove } from '../../../../src/convert/conversion/execute/check-output.js';
import { loadModelFile } from '../../../../src/input/model-input/read-model-file.js';
import { inPackage } from '../../../fixtures.js';

const TRAINED = inPackage('fixtures/old-checkpoint/trained-random-start');
const OTHER = inPackage('fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt');

const FLAGS: Omit<ProofJob, 'checkpoint' | 'out'> = {
  ...{ tie: undefined, dtype: undefined, quantize: undefined, target: undefined, set: undefined },
  ...{
    context: 8,
    seed: 0,
    engine: 'tfjs',
    device: 'cpu',
    threads: 1,
    display: progressDisplay({ quiet: true }),
  },
};

/** Proof of a conversion with another model as its output. */
async function proofOfOther(flags: Partial<ProofJob>, out = OTHER) {
  const checkpoint = openCheckpoint(path.join(TRAINED, 'checkpoint_step_30.pt'));
  try {
    const source = await loadModelFile(path.join(TRAINED, 'config.yaml'));
    return await prove({ ...FLAGS, ...flags, checkpoint, out }, source, true);
  } finally {
    checkpoint.close();
  }
}

it('the proof fails if the model differs without a requested change', async () => {
  const proof = await proofOfOther({});
  expect(proof).toMatchObject({ verdict: 'failed', isExact: true });
  expect(proof.against?.logits.relativeDifference).toBeGreaterThan(0.1);
});

it.each([{ dtype: 'F32' }, { tie: 'mean' }, { target: 'x.yaml' }, { set: ['model.x=1'] }] as const)(
  'the proof only reports differences of a requested change: %j',
  async (flags) => {
    expect(await proofOfOther(flags)).toMatchObject({ verdict: 'differs', isExact: false });
  },
);

it('the proof is skipped with a reason if the output cannot run', async () => {
  const proof = await proofOfOther({}, path.join(TRAINED, 'expected.safetensors'));
  expect(proof).toMatchObject({ verdict: 'skipped', against: null });
  expect(proof.why).toContain('expected.safetensors');
});
