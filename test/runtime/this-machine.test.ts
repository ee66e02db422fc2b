import { describe, expect, it } from 'vitest';
import { machineProfileSchema } from '../../src/hardware/machine-profile.js';
import { chooseEngine } from '../../src/runtime/select/devices.js';
import { measureMachine, untilSteady } from '../../src/runtime/this-machine.js';

it('a machine is measured by running layers on it', { timeout: 120_000 }, async () => {
  const { engine } = await chooseEngine({
    engine: 'auto',
    device: 'cpu',
    threads: 1,
    compute: 'f32',
  });
  const told: string[] = [];
  const speed = await measureMachine(engine, {
    watch: (what) => told.push(what),
    usableBytes: 64 * 2 ** 20,
  });
  await engine.close();
  expect(machineProfileSchema.shape.speed.safeParse(speed)).toMatchObject({ success: true });
  expect(new Set(told).size).toBe(told.length);
  expect(told.length).toBe(speed.products.length + 3);
  // A product of one row reads as many values as it makes operations; of 512 rows it makes 512 times as many.
  const [one] = speed.products;
  const many = speed.products.find(({ rows, width }) => rows === 512 && width === 512);
  expect(many?.flops.most).toBeGreaterThan(one?.flops.median ?? Number.POSITIVE_INFINITY);
});

describe('rounds are measured', () => {
  /** How many, when the fastest run of each is what `fastest` tells, and a round takes so many seconds. */
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
    // What hardly differs is no better.
    expect(await roundsOf((round) => 1 - round / 10_000)).toBe(6);
    // Others let go of the machine with the ninth.
    expect(await roundsOf((round) => (round < 4 ? 3 : round < 8 ? 2 : 1))).toBe(8 + 1 + 5);
  });

  it('for a second at the most', async () => {
    expect(await roundsOf((round) => 0.9 ** round)).toBe(25);
  });

  it('at least five times, however long they take', async () => {
    expect(await roundsOf(() => 1, 60)).toBe(5);
  });
});
