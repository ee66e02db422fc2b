/** The profile of this machine: read from the cache, or measured and stored. */
import os from 'node:os';
import path from 'node:path';
import { UserError } from '../base/errors.js';
import { cacheFolder, makeCacheFolder } from '../base/files/cache-folder.js';
import { homeFolder } from '../base/files/file-system.js';
import { forgetInput } from '../base/files/input-registry.js';
import { writeWhole } from '../base/files/write-whole.js';
import type { ProgressDisplay } from '../base/progress-display.js';
import { toJson } from '../base/text/escape.js';
import { setting } from '../base/text/setting.js';
import { loadText } from '../base/text/units.js';
import { checkDocument } from '../config/check-document.js';
import { invalidConfig } from '../config/document-problems.js';
import { escapeText } from '../config/quote.js';
import { readDocument } from '../config/read.js';
import type {
  MachineProfile,
  MeasurementConditions,
} from '../estimate/hardware/machine-profile.js';
import {
  isEarlierProfile,
  machineProfileSchema,
  mergedProfile,
  PROFILE_SCHEMA,
  stalenessOf,
} from '../estimate/hardware/machine-profile.js';
import type { EngineRequest } from './select/devices.js';

export interface MachineProfileRequest extends EngineRequest {
  /** Path of the profile; in the user's cache when undefined. */
  readonly file: string | undefined;
  /** Whether to measure even if a profile is stored. */
  readonly remeasure: boolean;
  readonly display: ProgressDisplay;
}

/** Facts of the machine from outside this program. */
interface ProfileSources {
  readonly measure: (
    wish: EngineRequest,
    circumstances: MeasurementConditions,
    load: number | null,
    doing: (text: string) => void,
  ) => Promise<MachineProfile>;
  /** Running and waiting processes per core; null where the system does not report it. */
  readonly load: () => number | null;
}

/**
 * The profile of this machine: the stored one if it is recent and of this machine, else a new measurement. A new
 * measurement keeps the best and the worst of a stored one of this machine. A profile of another machine is reported
 * and replaced. A busy machine is reported too.
 * @throws UserError when no engine can run here, or a file that the user names is not a profile.
 */
export async function machineProfile(
  wish: MachineProfileRequest,
  { measure, load: loadOf }: ProfileSources = { measure: measuredProfile, load: loadPerCore },
): Promise<MachineProfile> {
  const file = wish.file ?? cachedProfile(wish, process.platform, process.env, homeFolder());
  const shown = wish.display.steps();
  try {
    const circumstances = await circumstancesOf(wish);
    const stored = await storedProfile(file, wish);
    const load = loadOf();
    if (typeof stored === 'object' && !wish.remeasure) {
      const why = stalenessOf(stored, circumstances, new Date());
      if (why === null) {
        for (const text of loadTexts(stored.load, load)) shown.say(text);
        return stored;
      }
      shown.say(`measuring this machine again: ${why}`);
    } else if (typeof stored === 'string') {
      shown.say(`measuring this machine again: ${stored}`);
    }
    const newest = await measure(wish, circumstances, load, shown.doing);
    const profile = typeof stored === 'object' ? mergedProfile(stored, newest) : newest;
    for (const text of loadTexts(load, null)) shown.say(text);
    await store(file, profile, wish, shown.say);
    return profile;
  } finally {
    shown.end();
  }
}

/** Load per core above which a measurement is too low. */
const BUSY_LOAD = 0.5;

/** Warnings about the load at the time of the measurement, and about the load now. */
function loadTexts(then: number | null, now: number | null): string[] {
  const isBusy = (load: number | null): load is number => load !== null && load > BUSY_LOAD;
  return [
    ...(isBusy(then)
      ? [
          `this machine was measured at ${loadText(then)}: what it can do at best may not have been seen, and what is ` +
            `expected is slow; ${setting('remeasure')} while it is idle keeps the best and the worst of all measurements`,
        ]
      : []),
    ...(isBusy(now)
      ? [
          `this machine has ${loadText(now)} now: a model may take longer here than expected, and than its upper bound`,
        ]
      : []),
  ];
}

/** Load of the machine per core. Windows has no load average: Node.js returns zero there. */
function loadPerCore(): number | null {
  if (process.platform === 'win32') return null;
  const [lastMinute = 0] = os.loadavg();
  return lastMinute / (os.cpus().length || os.availableParallelism());
}

/**
 * Default path of the profile: the platform's folder for caches. The requested engine is in the name, so that engines
 * do not overwrite each other's profile.
 */
export function cachedProfile(
  { engine, device, compute }: Pick<EngineRequest, 'engine' | 'device' | 'compute'>,
  platform: NodeJS.Platform,
  env: Readonly<Record<string, string | undefined>>,
  home: string,
): string {
  const { join } = platform === 'win32' ? path.win32 : path.posix;
  return join(cacheFolder(env, platform, home), `machine-${engine}-${device}-${compute}.json`);
}

/**
 * A stored profile; undefined when there is none, and for an invalid one in the cache the reason.
 * @throws UserError when a file of the user's is not a profile: it must not be replaced.
 */
async function storedProfile(
  file: string,
  wish: MachineProfileRequest,
): Promise<MachineProfile | string | undefined> {
  try {
    const document = await readDocument(file, { isFound: wish.file === undefined });
    if (isEarlierProfile(document.value)) {
      return `what ${escapeText(file)} has is of an earlier version`;
    }
    const { value, problems, errors } = checkDocument(document, { schema: machineProfileSchema });
    if (value !== undefined) return value;
    throw invalidConfig(file, problems, errors);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    if (isMissing(error)) return undefined;
    const message = `${escapeText(file)} is not a profile of a machine`;
    if (wish.file === undefined) return message;
    if (error.code !== 'invalid-config' && error.code !== 'refused-file') throw error;
    throw new UserError('refused-file', message, {
      problems: error.problems,
      suggestion: `name another file with ${setting('profile')}, or remove this one`,
    });
  }
}

const isMissing = ({ cause }: UserError): boolean =>
  cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';

/** Circumstances that the speed depends on, found without loading an engine. */
async function circumstancesOf({
  engine,
  device,
  compute,
  threads,
}: EngineRequest): Promise<MeasurementConditions> {
  const { CANDIDATES, installedVersion } = await import('./select/engine-candidates.js');
  const versions = CANDIDATES.map((each) => [each.package, installedVersion(each)] as const);
  return {
    hostname: os.hostname(),
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
    threads,
    asked: { engine, device, compute },
    libraries: Object.fromEntries(
      versions.flatMap(([name, version]) => (version === null ? [] : [[name, version]])),
    ),
  };
}

async function measuredProfile(
  wish: EngineRequest,
  circumstances: MeasurementConditions,
  load: number | null,
  doing: (text: string) => void,
): Promise<MachineProfile> {
  doing('looking for an engine');
  const { chooseEngine } = await import('./select/devices.js');
  const { ENGINES } = await import('./engine.js');
  const { measureMachine } = await import('./this-machine.js');
  const { measureMemory } = await import('./memory-bandwidth.js');
  const { engine } = await chooseEngine(wish);
  try {
    const { name, version, provider, device, deviceKind, compute, memoryBytes, threads } =
      engine.info;
    const usableBytes = Math.min(process.availableMemory(), memoryBytes ?? Number.MAX_VALUE);
    const speed = await measureMachine(engine, {
      watch: (what) => doing(`measuring this machine: ${what}`),
      usableBytes,
    });
    const isOnCpu = deviceKind === 'cpu';
    doing('measuring this machine: system memory');
    const memoryBandwidth = await measureMemory(threads, usableBytes);
    const where = isOnCpu ? `${threads} threads` : device;
    const now = new Date().toISOString();
    return {
      schema: PROFILE_SCHEMA,
      measured: now,
      load,
      history: { measurements: 1, since: now, leastLoad: load },
      circumstances,
      engine: {
        name,
        title: `${ENGINES[name]} ${version} (${provider}, ${where})`,
        device: isOnCpu ? circumstances.cpu : device,
        isOnCpu,
        compute,
        memoryBytes,
      },
      speed: { ...speed, memoryBandwidth },
    };
  } finally {
    await engine.close();
  }
}

/** Writes the profile to the cache. A failure is harmless: the machine is measured again. */
async function store(
  file: string,
  profile: MachineProfile,
  wish: MachineProfileRequest,
  say: (text: string) => void,
): Promise<void> {
  try {
    if (wish.file === undefined) makeCacheFolder(path.dirname(file));
    // The profile is an input that this run updates, so overwriting it is intended.
    forgetInput(file);
    await writeWhole(file, true, (sink) => sink.write(Buffer.from(toJson(profile))), {
      isShort: true,
    });
  } catch (error) {
    if (wish.file !== undefined) throw error;
    say(`the profile of this machine cannot be kept: ${(error as Error).message}`);
  }
}
