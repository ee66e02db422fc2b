import { describe, expect, it } from 'vitest';
import { chooseEngine } from '../../src/engine/select/devices.js';
import { measureMachine, untilSteady } from '../../src/engine/this-machine.js';
import { machineProfileSchema } from '../../src/estimate/hardware/machine-profile.js';

it('the measurement of a machine gives a valid profile', { timeout: 120_000 }, async () => {
  const { engine } = await chooseEngine({
    engine: 'auto',
    device: 'cpu',
    threads: 1,
    compute: 'f32',
  });
  const watched: string[] = [];
  const speed = await measureMachine(engine, {
    watch: (what) => watched.push(what),
    usableBytes: 64 * 2 ** 20,
  });
  await engine.close();
  expect(machineProfileSchema.shape.speed.safeParse(speed)).toMatchObject({ success: true });
  expect(new Set(watched).size).toBe(watched.length);
  expect(watched.length).toBe(speed.products.length + 3);
  // A product of one row needs about one operation for each value that it reads, one of 512 rows needs 512.
  const [one] = speed.products;
  const many = speed.products.find(({ rows, width }) => rows === 512 && width === 512);
  expect(many?.flops.most).toBeGreaterThan(one?.flops.median ?? Number.POSITIVE_INFINITY);
});

describe('rounds are measured', () => {
  /** Number of rounds, for the given fastest run of each round and seconds per round. */
  const roundsOf = async (fastest: (round: number) => number, seconds = 0.04) => {
    let round = 0;
    const rounds = await untilSteady(
      async () => {
        const run = fastest(round);
        round += 1;
        return { fastest: run, mean: run };
      },
      () => round * seconds,
    );
    return rounds.length;
  };

  it('until five in a row do not improve', async () => {
    expect(await roundsOf(() => 1)).toBe(6);
    // A tiny difference does not count as an improvement.
    expect(await roundsOf((round) => 1 - round / 10_000)).toBe(6);
    // From the ninth round on, the machine is faster.
    expect(await roundsOf((round) => (round < 4 ? 3 : round < 8 ? 2 : 1))).toBe(8 + 1 + 5);
  });

  it('for at most a second', async () => {
    expect(await roundsOf((round) => 0.9 ** round)).toBe(25);
  });

  it('at least five times for any duration', async () => {
    expect(await roundsOf(() => 1, 60)).toBe(5);
  });
});
