import path from 'node:path';
import { expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { progressDisplay } from '../../../src/cli/progress.js';
import type { ProofJob } from '../../../src/conversion/execute/check-output.js';
import { prove } from '../../../src/conversion/execute/check-output.js';
import { loadModelFile } from '../../../src/model-input/model-file.js';
import { inPackage } from '../../fixtures.js';

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

/** As if another model had come of a conversion. */
async function proofOfOther(flags: Partial<ProofJob>, out = OTHER) {
  const checkpoint = openCheckpoint(path.join(TRAINED, 'checkpoint_step_30.pt'));
  try {
    const source = await loadModelFile(path.join(TRAINED, 'config.yaml'));
    return await prove({ ...FLAGS, ...flags, checkpoint, out }, source, true);
  } finally {
    checkpoint.close();
  }
}

it('fails when nothing was to change, and the model is another', async () => {
  const proof = await proofOfOther({});
  expect(proof).toMatchObject({ verdict: 'failed', isExact: true });
  expect(proof.against?.logits.relativeDifference).toBeGreaterThan(0.1);
});

it.each([{ dtype: 'F32' }, { tie: 'mean' }, { target: 'x.yaml' }, { set: ['model.x=1'] }] as const)(
  'does not judge what was to change: %j',
  async (flags) => {
    expect(await proofOfOther(flags)).toMatchObject({ verdict: 'differs', isExact: false });
  },
);

it('is not made, and says why, when the output cannot be run', async () => {
  const proof = await proofOfOther({}, path.join(TRAINED, 'expected.safetensors'));
  expect(proof).toMatchObject({ verdict: 'skipped', against: null });
  expect(proof.why).toContain('expected.safetensors');
});
