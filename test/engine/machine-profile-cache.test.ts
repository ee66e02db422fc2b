import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { progressDisplay } from '../../src/cli/progress.js';
import type { MachineProfileRequest } from '../../src/engine/machine-profile-cache.js';
import { cachedProfile, machineProfile } from '../../src/engine/machine-profile-cache.js';
import type {
  MeasurementConditions,
  MeasurementSpread,
} from '../../src/estimate/hardware/machine-profile.js';
import { PROFILE } from '../estimate/hardware/profiles.js';

let folder: string;
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  vi.stubEnv('XDG_CACHE_HOME', folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  fs.rmSync(folder, { recursive: true, force: true });
});

const REQUEST: MachineProfileRequest = {
  engine: 'auto',
  device: 'cpu',
  compute: 'f32',
  threads: 1,
  file: undefined,
  remeasure: false,
  display: progressDisplay({ quiet: false }),
};

/** Simulated results of a measurement. */
interface Measured {
  readonly load?: number | null;
  readonly weightBandwidth?: MeasurementSpread;
}

/** Requests the profile with simulated measurements. Returns it with the number of measurements and the messages. */
async function request(
  change: Partial<MachineProfileRequest> = {},
  { load = 0, weightBandwidth = PROFILE.speed.weightBandwidth }: Measured = {},
) {
  let measurements = 0;
  const messages: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    messages.push(String(text));
    return true;
  });
  const profile = await machineProfile(
    { ...REQUEST, ...change },
    {
      measure: async (_, circumstances, loadThen) => {
        measurements += 1;
        const since = new Date().toISOString();
        return {
          ...PROFILE,
          measured: since,
          load: loadThen,
          history: { measurements: 1, since, leastLoad: loadThen },
          circumstances,
          speed: { ...PROFILE.speed, weightBandwidth },
        };
      },
      load: () => load,
    },
  );
  return { profile, measurements, messages: messages.join('') };
}

const profileFile = () => path.join(folder, 'minimind', 'machine-auto-cpu-f32.json');

const changeProfile = (
  file: string,
  change: (circumstances: MeasurementConditions) => MeasurementConditions,
) => {
  const stored = JSON.parse(fs.readFileSync(file, 'utf8'));
  const circumstances = change(stored.circumstances);
  fs.writeFileSync(file, JSON.stringify({ ...stored, circumstances }));
};

describe.skipIf(process.platform !== 'linux')('the profile of this machine', () => {
  it('is measured once and kept in the cache', async () => {
    const first = await request();
    expect(first).toMatchObject({ measurements: 1, messages: '' });
    expect(JSON.parse(fs.readFileSync(profileFile(), 'utf8'))).toEqual(first.profile);
    const second = await request();
    expect(second).toMatchObject({ measurements: 0, profile: first.profile });
  });

  it('is measured again on request', async () => {
    await request();
    expect(await request({ remeasure: true })).toMatchObject({ measurements: 1 });
  });

  it('keeps the best and the worst of all measurements, at any load', async () => {
    const busy = { load: 2, weightBandwidth: { least: 2e9, median: 3e9, most: 4e9 } };
    const idle = { load: 0.1, weightBandwidth: { least: 14e9, median: 16e9, most: 18e9 } };
    const first = await request({}, busy);
    expect(first.profile.speed.weightBandwidth).toEqual(busy.weightBandwidth);
    const second = await request({ remeasure: true }, idle);
    expect(second.profile.speed.weightBandwidth).toEqual({ least: 2e9, median: 16e9, most: 18e9 });
    const third = await request({ remeasure: true }, busy);
    expect(third.profile.speed.weightBandwidth).toEqual({ least: 2e9, median: 3e9, most: 18e9 });
    expect(third.profile).toMatchObject({ load: 2, history: { measurements: 3, leastLoad: 0.1 } });
    expect(third.profile.history.since).toBe(first.profile.measured);
    expect((await request()).profile).toEqual(third.profile);
  });

  it('ignores measurements of another machine', async () => {
    await request({}, { weightBandwidth: { least: 1e9, median: 90e9, most: 99e9 } });
    changeProfile(profileFile(), (circumstances) => ({ ...circumstances, cpu: 'Another' }));
    const { profile } = await request({ remeasure: true });
    expect(profile.speed).toEqual(PROFILE.speed);
    expect(profile.history.measurements).toBe(1);
  });

  it('is measured again with a message when it has an earlier version, even in a file of the user', async () => {
    const file = path.join(folder, 'own.json');
    const { load: _, history: __, ...earlier } = PROFILE;
    fs.writeFileSync(file, JSON.stringify({ ...earlier, schema: 'minimind/machine@1' }));
    const again = await request({ file });
    expect(again.measurements).toBe(1);
    expect(again.messages).toBe(
      `measuring this machine again: what ${file} has is of an earlier version\n`,
    );
    expect(await request({ file })).toMatchObject({ measurements: 0, messages: '' });
  });

  describe('reports a busy machine', () => {
    const THEN = 'this machine was measured at a load of 0.60 for each core';
    const NOW = 'this machine has a load of 0.60 for each core now';

    it('when it is measured, and when that measurement is used', async () => {
      expect((await request({}, { load: 0.6 })).messages).toContain(THEN);
      const { messages } = await request({}, { load: 0.1 });
      expect(messages).toContain(THEN);
      expect(messages).not.toContain(NOW);
    });

    it('when it is busy only now', async () => {
      expect((await request({}, { load: 0.5 })).messages).toBe('');
      const { messages } = await request({}, { load: 0.6 });
      expect(messages).toContain(NOW);
      expect(messages).not.toContain(THEN);
    });

    it('but not without a known load, nor with --quiet', async () => {
      const quiet = progressDisplay({ quiet: true });
      expect((await request({}, { load: null })).messages).toBe('');
      expect((await request({ display: quiet, remeasure: true }, { load: 9 })).messages).toBe('');
      expect((await request({ display: quiet }, { load: 9 })).messages).toBe('');
    });
  });

  it('is separate for each device', async () => {
    await request();
    expect(await request({ device: 'auto' })).toMatchObject({ measurements: 1, messages: '' });
    expect(await request()).toMatchObject({ measurements: 0 });
  });

  it('is replaced with a message when it is of another machine', async () => {
    await request();
    changeProfile(profileFile(), (circumstances) => ({ ...circumstances, hostname: 'elsewhere' }));
    const again = await request();
    expect(again.measurements).toBe(1);
    expect(again.messages).toBe(
      'measuring this machine again: the stored measurements are of another machine\n',
    );
    expect(await request()).toMatchObject({ measurements: 0 });
  });

  it.each([
    ['no JSON', '{'],
    ['empty', ''],
    ['other JSON', '{"schema": "minimind/machine@2"}'],
    ['of a later version', JSON.stringify({ ...PROFILE, schema: 'minimind/machine@3' })],
    ['deeply nested', '['.repeat(100_000)],
    ['binary', '\0\0\0'],
    ['too large', ' '.repeat(2_000_000)],
  ])('is replaced with a message when the cached one is %s', async (_, text) => {
    fs.mkdirSync(path.dirname(profileFile()));
    fs.writeFileSync(profileFile(), text);
    const again = await request();
    expect(again.measurements).toBe(1);
    expect(again.messages).toContain(`${profileFile()} is not a profile of a machine`);
    expect(await request()).toMatchObject({ measurements: 0 });
  });

  it('can be kept in a file of the user, which may be missing', async () => {
    const file = path.join(folder, 'own.json');
    expect(await request({ file })).toMatchObject({ measurements: 1, messages: '' });
    expect(await request({ file })).toMatchObject({ measurements: 0 });
    expect(fs.existsSync(profileFile())).toBe(false);
  });

  it('never replaces a file with other content', async () => {
    const file = path.join(folder, 'own.yaml');
    fs.writeFileSync(file, 'model:\n  hidden_size: 64\n');
    await expect(request({ file })).rejects.toMatchObject({ code: 'refused-file' });
    await expect(request({ file, remeasure: true })).rejects.toMatchObject({
      code: 'refused-file',
    });
    expect(fs.readFileSync(file, 'utf8')).toBe('model:\n  hidden_size: 64\n');
  });

  it('is used even when it cannot be kept', async () => {
    fs.writeFileSync(path.join(folder, 'minimind'), 'a file where the folder should be');
    const { measurements, messages } = await request();
    expect(measurements).toBe(1);
    expect(messages).toContain('the profile of this machine cannot be kept: ');
  });
});

describe('the place of the profile', () => {
  const place = (platform: NodeJS.Platform, env: Record<string, string>, home = '/home/ada') =>
    cachedProfile({ engine: 'auto', device: 'gpu', compute: 'f32' }, platform, env, home);

  it.each<[NodeJS.Platform, Record<string, string>, string]>([
    ['linux', {}, '/home/ada/.cache/minimind/machine-auto-gpu-f32.json'],
    ['linux', { XDG_CACHE_HOME: '/c' }, '/c/minimind/machine-auto-gpu-f32.json'],
    ['linux', { XDG_CACHE_HOME: 'c' }, '/home/ada/.cache/minimind/machine-auto-gpu-f32.json'],
    ['linux', { XDG_CACHE_HOME: '' }, '/home/ada/.cache/minimind/machine-auto-gpu-f32.json'],
    ['darwin', {}, '/home/ada/Library/Caches/minimind/machine-auto-gpu-f32.json'],
    ['win32', { LOCALAPPDATA: 'D:\\l' }, 'D:\\l\\minimind\\machine-auto-gpu-f32.json'],
  ])('on %s with %j is %s', (platform, env, expected) => {
    expect(place(platform, env)).toBe(expected);
  });
});
