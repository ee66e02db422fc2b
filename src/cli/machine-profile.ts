/** The profile of this machine: read where one is stored, else measured and stored. */
import { mkdir } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { checkDocument } from '../config/check.js';
import { invalidConfig } from '../config/problems.js';
import { escapeText } from '../config/quote.js';
import { readDocument } from '../config/read.js';
import { UserError } from '../errors.js';
import { writeWhole } from '../files/write-whole.js';
import {
  type Circumstances,
  type MachineProfile,
  machineProfileSchema,
  PROFILE_SCHEMA,
  stalenessOf,
} from '../hardware/machine-profile.js';
import { toJson } from '../report/json.js';
import type { EngineWish } from '../runtime/devices.js';
import { steps } from './steps.js';

export interface ProfileWish extends EngineWish {
  /** Where it is stored; in the user's cache when undefined. */
  readonly file: string | undefined;
  /** Whether to measure although there is one. */
  readonly remeasure: boolean;
  readonly quiet: boolean;
}

/**
 * The profile of this machine. One that is stored is used when it is of this machine and not old; another is told of,
 * and replaced.
 * @throws UserError when no engine can run here, or a file that the user names is something else than a profile.
 */
export async function machineProfile(
  wish: ProfileWish,
  measure: typeof measured = measured,
): Promise<MachineProfile> {
  const file = wish.file ?? cachedProfile(wish, process.platform, process.env, os.homedir());
  const shown = steps(wish);
  try {
    const circumstances = await circumstancesOf(wish);
    const stored = await storedProfile(file, wish);
    if (typeof stored === 'object' && !wish.remeasure) {
      const why = stalenessOf(stored, circumstances, new Date());
      if (why === null) return stored;
      shown.say(`measuring this machine again: ${why}`);
    } else if (typeof stored === 'string') {
      shown.say(`measuring this machine again: ${stored}`);
    }
    const profile = await measure(wish, circumstances, shown.doing);
    await store(file, profile, wish, shown.say);
    return profile;
  } finally {
    shown.end();
  }
}

/**
 * Where the profile is kept when nobody says where: the folder for caches that the platform has. What is asked for is
 * in its name, so that an engine does not take another's place.
 */
export function cachedProfile(
  { engine, device, compute }: Pick<EngineWish, 'engine' | 'device' | 'compute'>,
  platform: NodeJS.Platform,
  env: Readonly<Record<string, string | undefined>>,
  home: string,
): string {
  const { join, isAbsolute } = platform === 'win32' ? path.win32 : path.posix;
  // The specification of XDG has relative paths ignored.
  const given = (name: string) => {
    const value = env[name];
    return value !== undefined && isAbsolute(value) ? value : undefined;
  };
  const caches =
    platform === 'win32'
      ? (given('LOCALAPPDATA') ?? join(home, 'AppData', 'Local'))
      : (given('XDG_CACHE_HOME') ??
        (platform === 'darwin' ? join(home, 'Library', 'Caches') : join(home, '.cache')));
  return join(caches, 'minimind', `machine-${engine}-${device}-${compute}.json`);
}

/**
 * A stored profile; undefined when there is none, and in the cache the reason why what is there is none.
 * @throws UserError when it is a file of the user's that is no profile: it must not be replaced.
 */
async function storedProfile(
  file: string,
  wish: ProfileWish,
): Promise<MachineProfile | string | undefined> {
  try {
    const document = await readDocument(file);
    const { value, problems, errors } = checkDocument(document, { schema: machineProfileSchema });
    if (value !== undefined) return value;
    throw invalidConfig(file, problems, errors);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    if (isMissing(error)) return undefined;
    const message = `${escapeText(file)} is no profile of a machine`;
    if (wish.file === undefined) return message;
    if (error.code !== 'invalid-config' && error.code !== 'refused-file') throw error;
    throw new UserError('refused-file', message, {
      problems: error.problems,
      suggestion: 'name another file with --profile, or remove this one',
    });
  }
}

const isMissing = ({ cause }: UserError): boolean =>
  cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';

/** What the speed depends on, without loading an engine. */
async function circumstancesOf({
  engine,
  device,
  compute,
  threads,
}: EngineWish): Promise<Circumstances> {
  const { CANDIDATES, installedVersion } = await import('../runtime/candidates.js');
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

async function measured(
  wish: EngineWish,
  circumstances: Circumstances,
  doing: (text: string) => void,
): Promise<MachineProfile> {
  doing('looking for an engine');
  const { chooseEngine } = await import('../runtime/devices.js');
  const { ENGINES } = await import('../runtime/engine.js');
  const { measureMachine } = await import('../runtime/this-machine.js');
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
    const where = isOnCpu ? `${threads} threads` : device;
    return {
      schema: PROFILE_SCHEMA,
      measured: new Date().toISOString(),
      circumstances,
      engine: {
        name,
        title: `${ENGINES[name]} ${version} (${provider}, ${where})`,
        device: isOnCpu ? circumstances.cpu : device,
        isOnCpu,
        compute,
        memoryBytes,
      },
      speed,
    };
  } finally {
    await engine.close();
  }
}

/** In the cache nothing is lost when it cannot be written: it is measured again. */
async function store(
  file: string,
  profile: MachineProfile,
  wish: ProfileWish,
  say: (text: string) => void,
): Promise<void> {
  try {
    if (wish.file === undefined) await mkdir(path.dirname(file), { recursive: true });
    await writeWhole(file, true, (sink) => sink.write(Buffer.from(toJson(profile))));
  } catch (error) {
    if (wish.file !== undefined) throw error;
    say(`the profile of this machine cannot be kept: ${(error as Error).message}`);
  }
}
