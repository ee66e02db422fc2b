import { expect, it } from 'vitest';
import { machineProfileSchema } from '../../src/hardware/machine-profile.js';
import { chooseEngine } from '../../src/runtime/devices.js';
import { measureMachine } from '../../src/runtime/this-machine.js';

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
