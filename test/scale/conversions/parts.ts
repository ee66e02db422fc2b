/** Conversions in parts of the command, in this process. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { progressDisplay, stepProgress } from '../../../src/cli/progress.js';
import type { ConversionResult } from '../../../src/convert/conversion/conversion-result.js';
import type { ConversionRequest } from '../../../src/convert/conversion/job.js';
import { openModelCheckpoint } from '../../../src/input/model-input/gguf/gguf-checkpoint.js';
import {
  ConversionParts,
  type PartsResult,
} from '../../../src/scale/conversions/conversion-parts.js';
import { planInParts } from '../../../src/scale/conversions/make-parts.js';
import type { PartsPlan } from '../../../src/scale/conversions/parts-plan.js';
import type { Phase } from '../../../src/scale/conversions/receipts.js';
import type { LockTimes } from '../../../src/scale/part-lock.js';
import { writePlan } from '../../../src/scale/plan-file.js';
import { DEFAULTS, type Flags } from '../../convert/conversion/convert.js';

const VERSION = '0.0.1';

/** Short times for tests: the owner of a lock counts as dead after 200 ms. */
export const TIMES: LockTimes = { beat: 20, stale: 200 };

const quiet = { quiet: true };
const display = { ...progressDisplay(quiet), ...stepProgress(quiet) };

/** Does nothing: only tests of the command use models of the hub. */
const mount = async (): Promise<void> => {};

export interface Planned {
  readonly file: string;
  readonly plan: PartsPlan;
}

/** Plans a conversion, and writes the plan next to the output. */
export async function plan(
  input: string,
  output: string,
  flags: Flags,
  parts: number,
  blockRows?: number,
): Promise<Planned> {
  const { stateDict, ...settings } = flags;
  const checkpoint = openModelCheckpoint(input, { stateDict });
  try {
    const request: ConversionRequest = {
      ...DEFAULTS,
      ...{ check: false, ...settings, checkpoint, out: output, display },
    };
    const planned = await planInParts(request, { parts, stateDict, version: VERSION, blockRows });
    const file = `${output.replace(/\/$/, '')}.plan-${parts}.json`;
    await writePlan(file, planned, true);
    return { file, plan: planned };
  } finally {
    checkpoint.close();
  }
}

export const opened = (
  { file }: Pick<Planned, 'file'>,
  version = VERSION,
): Promise<ConversionParts> => ConversionParts.openToWrite({ file, version });

export async function run(
  planned: Pick<Planned, 'file'>,
  part: number | 'auto',
  options: {
    readonly phase?: Phase;
    readonly environment?: Record<string, string>;
    readonly tasks?: number;
  } = {},
): Promise<PartsResult> {
  const parts = await opened(planned);
  const { phase, tasks, environment = {} } = options;
  return parts.run(parts.partsFor({ part, tasks, environment }), {
    ...{ phase, display, mount, times: TIMES, poll: 5 },
  });
}

export async function finish(
  planned: Pick<Planned, 'file'>,
  check = false,
  force = false,
): Promise<ConversionResult | PartsResult> {
  return (await opened(planned)).finish({ display, mount, check, force });
}

/** SHA-256 of a file, or of each file in a folder. */
export function hashes(target: string): Record<string, string> {
  const names = fs.statSync(target).isDirectory() ? fs.readdirSync(target).sort() : [''];
  return Object.fromEntries(
    names.map((name) => {
      const content = fs.readFileSync(path.join(target, name));
      return [name, createHash('sha256').update(content).digest('hex')];
    }),
  );
}
