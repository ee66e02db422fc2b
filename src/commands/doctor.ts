import { execFile } from 'node:child_process';
import os from 'node:os';
import * as Flags from '@oclif/core/flags';
import { endsWithProgram } from '../base/files/early-end.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { details, threads as threadsFlag } from '../cli/flags/flags.js';
import { steps } from '../cli/progress.js';
import type { AdapterSurvey } from '../engine/adapters/adapters.js';
import type { CandidateName } from '../engine/select/engine-candidates.js';
import type { DoctorResult, SurveyEntry } from '../engine/select/survey.js';
import { doctorReport } from '../report/doctor-report.js';

/** Copy of the names in `src/engine/select/engine-candidates.ts`: a command loads nothing before it runs. */
const NAMES = {
  'onnx:cuda': true,
  'onnx:webgpu': true,
  'onnx:dml': true,
  'onnx:coreml': true,
  'onnx:cpu': true,
  'tfjs:node-gpu': true,
  'tfjs:node': true,
  'tfjs:wasm': true,
  'tfjs:cpu': true,
} as const satisfies Record<CandidateName, true>;

export default class Doctor extends BaseCommand {
  static override summary = 'Show which engines and graphics cards can run models here.';
  static override description =
    'Tries every engine with every backend: is it installed, does it compute a tiny model correctly, and how fast is ' +
    'a matrix product. --details lists what is wrong with the others and how to fix it, and the limits of the ' +
    'graphics cards. The exit code is 0 whatever it finds.';
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --only tfjs:wasm --json',
  ];

  static override flags = {
    details,
    threads: threadsFlag(),
    only: Flags.option({
      options: Object.keys(NAMES) as CandidateName[],
      description: 'try only this one',
    } as const)(),
  };

  async run() {
    const { flags } = await this.parse(Doctor);
    const threads = flags.threads ?? os.availableParallelism();
    const engines = await survey(flags, threads, this.program);
    // `--only` tries just that candidate.
    const graphics = flags.only ? null : await surveyGraphics(flags);
    const result: DoctorResult = {
      schema: 'minimind/doctor@1',
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
      processors: os.availableParallelism(),
      availableBytes: process.availableMemory(),
      threads,
      engines,
      adapters: graphics?.adapters ?? null,
      adapterFindings: graphics?.findings ?? null,
    };
    return this.answer(flags, result, doctorReport);
  }
}

async function surveyGraphics(flags: FlagsOf<typeof Doctor>): Promise<AdapterSurvey> {
  const { surveyAdapters } = await import('../engine/adapters/adapters.js');
  const shown = steps(flags);
  shown.doing('looking for graphics adapters');
  try {
    return await surveyAdapters();
  } finally {
    shown.end();
  }
}

async function survey(
  flags: FlagsOf<typeof Doctor>,
  threads: number,
  program: string,
): Promise<SurveyEntry[]> {
  const { surveyEngine, surveyEngines } = await import('../engine/select/survey.js');
  if (flags.only) return [await surveyEngine(flags.only, threads)];
  const shown = steps(flags);
  try {
    return await surveyEngines({
      threads,
      watch: (name) => shown.doing(`trying ${name}`),
      apart: (name) => inOwnProcess(program, name, threads),
    });
  } finally {
    shown.end();
  }
}

/** Maximum milliseconds for an engine, because some drivers never answer. */
const TIMEOUT_MS = 60_000;

/** Output of this command for one engine in its own process, whose stderr is ignored. With `--only` it starts no other. */
function inOwnProcess(program: string, name: CandidateName, threads: number): Promise<string> {
  const words = ['doctor', '--only', name, '--threads', String(threads), '--json'];
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [...process.execArgv, program, ...words],
      { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' },
      (error, stdout) => {
        ended();
        // A complete answer counts, even if the process crashed after it.
        if (stdout.trimEnd().endsWith('}')) resolve(stdout);
        else reject(new Error(whyNoAnswer(error)));
      },
    );
    const ended = endsWithProgram(child);
  });
}

function whyNoAnswer(error: (Error & { killed?: boolean; signal?: string | null }) | null): string {
  if (error?.killed) return `it gave no answer within ${TIMEOUT_MS / 1000} s`;
  return error?.signal ? `it crashed (${error.signal})` : 'it crashed';
}
