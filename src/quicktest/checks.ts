import { checkBatch } from './batch.js';
import { checkCache } from './cache.js';
import { checkCausality } from './causality.js';
import type { Check, CheckName, CheckResult } from './check.js';
import { checkCreated } from './created.js';
import { checkAcross } from './cross-check.js';
import { checkForward } from './forward.js';
import { checkRepeat } from './repeat.js';
import { checkSrte } from './srte.js';
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
  'cross-check': checkAcross,
} as const satisfies Record<CheckName, Check>;

/** Runs one check on a model that fits into memory. */
export async function runCheck(name: CheckName, subject: Subject): Promise<CheckResult> {
  const start = performance.now();
  const finding = await RUN[name](subject);
  return { check: name, ...finding, seconds: (performance.now() - start) / 1000 };
}
