/** What a conversion was found to change of what the model computes. */

import { note } from '../kit/cells.js';
import { percentText } from '../kit/percent.js';
import type { Block, Tone } from '../kit/report.js';
import { againstBlocks } from '../quick-test/against.js';
import type { Proof } from './convert-result.js';

export function proofBlocks(proof: Proof | null): Block[] {
  if (proof === null) return [];
  const { against, why } = proof;
  return [
    { kind: 'heading', text: proofText(proof), tone: PROOF_TONES[proof.verdict] },
    ...(against ? againstBlocks(against) : [note(`The output stands, and was not run: ${why}.`)]),
  ];
}

const PROOF_TONES = {
  same: 'good',
  differs: 'strong',
  failed: 'bad',
  skipped: 'warning',
} as const satisfies Record<Proof['verdict'], Tone>;

function proofText({ verdict, against }: Proof): string {
  const share = against?.logits.relativeDifference ?? 0;
  const found = Number.isFinite(share)
    ? `the logits of the output differ from those of the input by ${percentText(share)}`
    : 'the logits are not all finite, and cannot be compared';
  switch (verdict) {
    case 'same':
      return 'Proof: the output computes the same as the input, within rounding';
    case 'differs':
      return `Proof: ${found}`;
    case 'failed':
      return `Proof FAILED: no value was to change, and ${found}`;
    case 'skipped':
      return 'No proof could be made';
  }
}
