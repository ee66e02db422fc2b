import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { progressDisplay } from '../../src/cli/progress.js';
import type {
  MeasurementConditions,
  MeasurementSpread,
} from '../../src/hardware/machine-profile.js';
import type { MachineProfileRequest } from '../../src/runtime/machine-profile-cache.js';
import { cachedProfile, machineProfile } from '../../src/runtime/machine-profile-cache.js';
import { PROFILE } from '../hardware/profiles.js';

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

const WISH: MachineProfileRequest = {
  engine: 'auto',
  device: 'cpu',
  compute: 'f32',
  threads: 1,
  file: undefined,
  remeasure: false,
  display: progressDisplay({ quiet: false }),
};

/** What a measurement is said to find: as an idle machine does, or a busy one. */
interface Found {
  readonly load?: number | null;
  readonly weightBandwidth?: MeasurementSpread;
}

/** Asks for the profile; what was measured in place of it is counted. */
async function asked(
  change: Partial<MachineProfileRequest> = {},
  { load = 0, weightBandwidth = PROFILE.speed.weightBandwidth }: Found = {},
) {
  let measurements = 0;
  const told: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    told.push(String(text));
    return true;
  });
  const profile = await machineProfile(
    { ...WISH, ...change },
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
  return { profile, measurements, told: told.join('') };
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
  it('is measured once, and kept in the cache', async () => {
    const first = await asked();
    expect(first).toMatchObject({ measurements: 1, told: '' });
    expect(JSON.parse(fs.readFileSync(profileFile(), 'utf8'))).toEqual(first.profile);
    const second = await asked();
    expect(second).toMatchObject({ measurements: 0, profile: first.profile });
  });

  it('is measured again on request', async () => {
    await asked();
    expect(await asked({ remeasure: true })).toMatchObject({ measurements: 1 });
  });

  it('keeps the best and the worst of all measurements, at any load', async () => {
    const busy = { load: 2, weightBandwidth: { least: 2e9, median: 3e9, most: 4e9 } };
    const idle = { load: 0.1, weightBandwidth: { least: 14e9, median: 16e9, most: 18e9 } };
    const first = await asked({}, busy);
    expect(first.profile.speed.weightBandwidth).toEqual(busy.weightBandwidth);
    const second = await asked({ remeasure: true }, idle);
    expect(second.profile.speed.weightBandwidth).toEqual({ least: 2e9, median: 16e9, most: 18e9 });
    const third = await asked({ remeasure: true }, busy);
    expect(third.profile.speed.weightBandwidth).toEqual({ least: 2e9, median: 3e9, most: 18e9 });
    expect(third.profile).toMatchObject({ load: 2, history: { measurements: 3, leastLoad: 0.1 } });
    expect(third.profile.history.since).toBe(first.profile.measured);
    expect((await asked()).profile).toEqual(third.profile);
  });

  it('forgets what was measured of another machine', async () => {
    await asked({}, { weightBandwidth: { least: 1e9, median: 90e9, most: 99e9 } });
    changeProfile(profileFile(), (circumstances) => ({ ...circumstances, cpu: 'Another' }));
    const { profile } = await asked({ remeasure: true });
    expect(profile.speed).toEqual(PROFILE.speed);
    expect(profile.history.measurements).toBe(1);
  });

  it('an earlier version is reported and measured again, in a file of the user too', async () => {
    const file = path.join(folder, 'own.json');
    const { load: _, history: __, ...earlier } = PROFILE;
    fs.writeFileSync(file, JSON.stringify({ ...earlier, schema: 'minimind/machine@1' }));
    const again = await asked({ file });
    expect(again.measurements).toBe(1);
    expect(again.told).toBe(
      `measuring this machine again: what ${file} has is of an earlier version\n`,
    );
    expect(await asked({ file })).toMatchObject({ measurements: 0, told: '' });
  });

  describe('reports a busy machine', () => {
    const THEN = 'this machine was measured at a load of 0.60 for each core';
    const NOW = 'this machine has a load of 0.60 for each core now';

    it('when it is measured, and whenever that is used', async () => {
      expect((await asked({}, { load: 0.6 })).told).toContain(THEN);
      const { told } = await asked({}, { load: 0.1 });
      expect(told).toContain(THEN);
      expect(told).not.toContain(NOW);
    });

    it('now, although it was not then', async () => {
      expect((await asked({}, { load: 0.5 })).told).toBe('');
      const { told } = await asked({}, { load: 0.6 });
      expect(told).toContain(NOW);
      expect(told).not.toContain(THEN);
    });

    it('not where the system reports no load, nor with --quiet', async () => {
      const quiet = progressDisplay({ quiet: true });
      expect((await asked({}, { load: null })).told).toBe('');
      expect((await asked({ display: quiet, remeasure: true }, { load: 9 })).told).toBe('');
      expect((await asked({ display: quiet }, { load: 9 })).told).toBe('');
    });
  });

  it('is one for each device', async () => {
    await asked();
    expect(await asked({ device: 'auto' })).toMatchObject({ measurements: 1, told: '' });
    expect(await asked()).toMatchObject({ measurements: 0 });
  });

  it('a profile of another machine is reported and replaced', async () => {
    await asked();
    changeProfile(profileFile(), (circumstances) => ({ ...circumstances, hostname: 'elsewhere' }));
    const again = await asked();
    expect(again.measurements).toBe(1);
    expect(again.told).toBe(
      'measuring this machine again: the stored measurements are of another machine\n',
    );
    expect(await asked()).toMatchObject({ measurements: 0 });
  });

  it.each([
    ['no JSON', '{'],
    ['nothing', ''],
    ['something else', '{"schema": "minimind/machine@2"}'],
    ['a later form of it', JSON.stringify({ ...PROFILE, schema: 'minimind/machine@3' })],
    ['a bomb', '['.repeat(100_000)],
    ['bytes', '\0\0\0'],
    ['too much', ' '.repeat(2_000_000)],
  ])('a cached profile that is %s is reported and replaced', async (_, text) => {
    fs.mkdirSync(path.dirname(profileFile()));
    fs.writeFileSync(profileFile(), text);
    const again = await asked();
    expect(again.measurements).toBe(1);
    expect(again.told).toContain(`${profileFile()} is not a profile of a machine`);
    expect(await asked()).toMatchObject({ measurements: 0 });
  });

  it('is kept in a file of the user, who may have none yet', async () => {
    const file = path.join(folder, 'own.json');
    expect(await asked({ file })).toMatchObject({ measurements: 1, told: '' });
    expect(await asked({ file })).toMatchObject({ measurements: 0 });
    expect(fs.existsSync(profileFile())).toBe(false);
  });

  it('never takes the place of a file that is something else', async () => {
    const file = path.join(folder, 'own.yaml');
    fs.writeFileSync(file, 'model:\n  hidden_size: 64\n');
    await expect(asked({ file })).rejects.toMatchObject({ code: 'refused-file' });
    await expect(asked({ file, remeasure: true })).rejects.toMatchObject({ code: 'refused-file' });
    expect(fs.readFileSync(file, 'utf8')).toBe('model:\n  hidden_size: 64\n');
  });

  it('is used although it cannot be kept', async () => {
    fs.writeFileSync(path.join(folder, 'minimind'), 'a file where the folder should be');
    const { measurements, told } = await asked();
    expect(measurements).toBe(1);
    expect(told).toContain('the profile of this machine cannot be kept: ');
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
