import { UserError } from '../errors.js';
import { DeviceLostError } from '../runtime/engine.js';
import { checkBatch } from './batch.js';
import { checkCache } from './cache.js';
import { checkCausality } from './causality.js';
import type { Check, CheckName, CheckResult } from './check.js';
import { checkCreated } from './created.js';
import { checkAcross } from './cross-check.js';
import type { Finding } from './finding.js';
import { checkFloat16 } from './float16.js';
import { checkForward, notComparable } from './forward.js';
import { checkRepeat } from './repeat.js';
import { checkSrte, srteOf } from './srte.js';
import type { Subject } from './subject.js';
import { checkTiming } from './timing.js';

const RUN = {
  created: checkCreated,
  forward: checkForward,
  causality: checkCausality,
  batch: checkBatch,
  repeat: checkRepeat,
  timing: checkTiming,
  srte: checkSrte,
  cache: checkCache,
  float16: checkFloat16,
  'cross-check': checkAcross,
} as const satisfies Record<CheckName, Check>;

/** What compares logits, and so has nothing to go by where these are no numbers. */
const COMPARES_LOGITS = {
  created: false,
  forward: false,
  causality: true,
  batch: true,
  repeat: false,
  timing: false,
  srte: true,
  cache: true,
  float16: true,
  'cross-check': true,
} as const satisfies Record<CheckName, boolean>;

/** Runs one check on a model that fits into memory. What keeps it from its end is its finding. */
export async function runCheck(name: CheckName, subject: Subject): Promise<CheckResult> {
  const start = performance.now();
  const finding = await findingOf(name, subject);
  return { check: name, ...finding, seconds: (performance.now() - start) / 1000 };
}

async function findingOf(name: CheckName, subject: Subject): Promise<Finding> {
  try {
    const isSkipped = name === 'srte' && srteOf(subject.model) === undefined;
    const comparesLogits = COMPARES_LOGITS[name] && !isSkipped;
    const wrong = comparesLogits && notComparable((await subject.base()).output);
    return wrong || (await RUN[name](subject));
  } catch (error) {
    if (!(error instanceof UserError) || endsAll(error)) throw error;
    return cannotRun(error);
  }
}

/** Whether no check after this one could run either. */
const endsAll = (error: UserError): boolean =>
  error.code === 'interrupted' || error instanceof DeviceLostError;

const cannotRun = ({ message, suggestion }: UserError): Finding => ({
  verdict: 'failed',
  finding: `it could not run: ${message}`,
  remarks: suggestion === undefined ? [] : [suggestion],
});
