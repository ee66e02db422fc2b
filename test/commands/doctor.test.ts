import { beforeAll, describe, expect, it } from 'vitest';
import Doctor from '../../src/commands/doctor.js';
import { matchesRequest } from '../../src/engine/select/devices.js';
import { CANDIDATES } from '../../src/engine/select/engine-candidates.js';
import { type Run, runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

describe('doctor', () => {
  let here: Run;
  beforeAll(async () => {
    here = await runHere(['doctor', '--json']);
  }, 60_000);

  it('lists every engine with every backend, and exits with 0', () => {
    expect(here).toMatchObject({ code: 0, stderr: '' });
    const { engines, adapters, adapterFindings } = JSON.parse(here.stdout);
    const named = (engine: string, backend: string) =>
      engines.find(
        (each: { engine: string; backend: string }) =>
          each.engine === engine && each.backend === backend,
      );
    const candidates = CANDIDATES.filter((each) => matchesRequest(each, process.platform));
    expect(engines).toHaveLength(candidates.length);
    // Without an adapter, there is a finding for each search.
    expect(adapters.length + adapterFindings.length).toBeGreaterThan(0);
    expect(named('tfjs', 'wasm')).toMatchObject({ problem: null, selfCheck: { passed: true } });
    for (const { version, problem, info, productFlops } of engines) {
      if (problem === null)
        expect([typeof info.threads, productFlops > 0]).toEqual(['number', true]);
      if (version === null) expect(problem).toBe('it is not installed');
    }
  });

  it('tries engines in processes of the program, even if another process runs the command', () => {
    const problems = (stdout: string) =>
      JSON.parse(stdout).engines.map(({ problem }: { problem: string | null }) => problem);
    const alone = problems(runCli(['doctor', '--json']).stdout);
    expect(problems(here.stdout)).toEqual(alone);
  });

  it('has a choice of --only for each engine', () => {
    expect(Doctor.flags.only.options).toEqual(CANDIDATES.map(({ name }) => name));
  });

  it('tries only the engine of --only', async () => {
    const { code, stdout } = await runHere(['doctor', '--only', 'tfjs:cpu', '--threads', '1']);
    expect(code).toBe(0);
    expect(stdout).not.toMatch(/graphics/i);
    expect(stdout).toMatch(
      /^Models run here on TensorFlow\.js \(cpu\), the fastest of 1 usable engine\n/,
    );
    expect(stdout).toMatch(
      /^TensorFlow\.js +cpu +4\.22\.0 +usable +1 +\d\.\de-\d +[\d.]+ GFLOP\/s$/m,
    );
  });
});
