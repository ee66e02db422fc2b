import { execFile } from 'node:child_process';
import os from 'node:os';
import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.js';
import { threads as threadsFlag } from '../cli/flags.js';
import { steps } from '../cli/steps.js';
import { doctorReport } from '../report/doctor.js';
import type { SurveyEntry } from '../runtime/survey.js';

export default class Doctor extends BaseCommand {
  static override summary = 'Tell which engines can run models here, and how to get the others.';
  static override description =
    'Tries every engine with every backend: whether it is there, whether it computes what it should (a tiny ' +
    'model whose logits are known), and how fast it multiplies. Needs no config. Exits with 0 whatever it finds.';
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --only tfjs:wasm --json',
  ];

  static override flags = {
    threads: threadsFlag(),
    only: Flags.option({
      options: [
        'onnx:cpu',
        'onnx:webgpu',
        'onnx:cuda',
        'tfjs:node-gpu',
        'tfjs:node',
        'tfjs:wasm',
        'tfjs:cpu',
      ],
      description: 'try this one alone',
    } as const)(),
  };

  async run() {
    const { flags } = await this.parse(Doctor);
    const threads = flags.threads ?? os.availableParallelism();
    const result = {
      schema: 'minimind/doctor@1',
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
      processors: os.availableParallelism(),
      availableBytes: process.availableMemory(),
      threads,
      engines: await survey(flags, threads),
    } as const;
    return this.answer(flags, result, doctorReport);
  }
}

async function survey(
  flags: { readonly only: string | undefined; readonly quiet: boolean },
  threads: number,
): Promise<SurveyEntry[]> {
  const { surveyEngine, surveyEngines } = await import('../runtime/survey.js');
  if (flags.only) return [await surveyEngine(flags.only, threads)];
  const shown = steps(flags);
  try {
    return await surveyEngines({
      threads,
      watch: (name) => shown.doing(`trying ${name}`),
      apart: (name) => inOwnProcess(name, threads),
    });
  } finally {
    shown.end();
  }
}

/** Milliseconds: some drivers never answer. */
const PATIENCE = 60_000;

/** What this command finds out about one engine in a process of its own, whose complaints nobody sees. */
async function inOwnProcess(name: string, threads: number): Promise<SurveyEntry> {
  const [, program = ''] = process.argv;
  const words = ['doctor', '--only', name, '--threads', String(threads), '--json'];
  const output = await new Promise<string>((resolve, reject) => {
    execFile(
      process.execPath,
      [...process.execArgv, program, ...words],
      { timeout: PATIENCE, killSignal: 'SIGKILL' },
      (error, stdout) => {
        // An answer that was given counts, even when the process could not end in order after it.
        if (stdout.trimEnd().endsWith('}')) resolve(stdout);
        else reject(new Error(whyNoAnswer(error)));
      },
    );
  });
  const { engines } = JSON.parse(output) as { readonly engines: readonly [SurveyEntry] };
  return engines[0];
}

function whyNoAnswer(error: (Error & { killed?: boolean; signal?: string | null }) | null): string {
  if (error?.killed) return `it gave no answer within ${PATIENCE / 1000} s`;
  return error?.signal ? `it crashed (${error.signal})` : 'it crashed';
}
