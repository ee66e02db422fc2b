/** Which engine runs a model, and on what: found, checked, chosen and explained. */
import { UserError } from '../errors.js';
import type { Adapter } from './adapters.js';
import { CANDIDATES, type Candidate, installedVersion, type OpenOptions } from './candidates.js';
import {
  DEVICES,
  type DeviceName,
  ENGINES,
  type Engine,
  type EngineInfo,
  type EngineName,
} from './engine.js';
import { type SelfCheck, selfCheck } from './self-check.js';

export type EngineChoice = EngineName | 'auto';

/** `gpu` is any graphics card; `auto` one where there is one that can be used, else the processor. */
export type DeviceChoice = DeviceName | 'gpu' | 'auto';

/** A way of computing that cannot be used here. */
export interface PassedOver {
  readonly engine: EngineName;
  readonly backend: string;
  readonly device: DeviceName;
  readonly why: string;
  /** What would help. */
  readonly suggestion?: string;
}

/** An engine that computes what it should. */
export interface CheckedEngine {
  readonly engine: Engine;
  readonly selfCheck: SelfCheck;
}

export interface ChosenEngine extends CheckedEngine {
  /** What would have come first, but for packages that are the user's to want, and are not installed. */
  readonly passedOver: readonly PassedOver[];
}

export interface EngineWish extends OpenOptions {
  readonly engine: EngineChoice;
  readonly device: DeviceChoice;
}

type Choosable = Omit<Candidate, 'name'>;

/**
 * Opens the engine that is asked for on the device that is asked for, or under `auto` the fastest, of those
 * that compute what they should. A software adapter is taken only by its own name.
 * @throws UserError when there is none.
 */
export async function chooseEngine(
  wish: EngineWish,
  candidates: readonly Choosable[] = CANDIDATES,
  platform: NodeJS.Platform = process.platform,
): Promise<ChosenEngine> {
  const wished = candidates.filter((each) => isWished(wish, each));
  if (wished.length === 0) throw noSuchPair(wish, candidates);
  const {
    opened,
    selfCheck: check,
    passedOver,
  } = await firstUsable(
    cardsFirst(wished.filter((each) => isExpected(wish, each, platform))),
    async (candidate) => {
      await refuseUnfit(wish, candidate);
      return openHere(candidate, wish, platform);
    },
    selfCheck,
  );
  return { engine: opened, selfCheck: check, passedOver };
}

const isWished = ({ engine, device }: EngineWish, candidate: Choosable): boolean =>
  (engine === 'auto' || candidate.engine === engine) && isWishedDevice(device, candidate);

function isWishedDevice(wish: DeviceChoice, { device, isAutomatic }: Choosable): boolean {
  switch (wish) {
    case 'auto':
      return isAutomatic;
    case 'gpu':
      return device !== 'cpu';
    case 'cpu':
    case 'cuda':
    case 'webgpu':
    case 'directml':
    case 'coreml':
      return device === wish;
  }
}

const isAnyCard = ({ device }: EngineWish): boolean => device === 'auto' || device === 'gpu';

/** Whether it is worth a word that it is not to be had: not what is for other systems, or was never installed. */
const isExpected = (wish: EngineWish, candidate: Choosable, platform: NodeJS.Platform): boolean => {
  const isNamed = candidate.device !== 'cpu' && wish.device !== 'auto';
  const isHere = isFor(candidate, platform);
  const isInstalled = !candidate.isOptional || installedVersion(candidate) !== null;
  return wish.device === candidate.device || (isHere && (isNamed || isInstalled));
};

const cardsFirst = <T extends Choosable>(candidates: readonly T[]): T[] =>
  candidates.toSorted((a, b) => Number(a.device === 'cpu') - Number(b.device === 'cpu'));

/** What needs not be tried. */
async function refuseUnfit(wish: EngineWish, candidate: Choosable): Promise<void> {
  const isAny = isAnyCard(wish);
  if (!candidate.adapter || (!isAny && wish.compute === 'f32')) return;
  const adapter = await candidate.adapter();
  if (isAny) await refuseNoCard(candidate, adapter);
  if (wish.compute === 'f32' || adapter?.hasFloat16 !== false) return;
  throw new UserError('system', `${adapter.name} does not compute in float16`, {
    suggestion: '--compute f32',
  });
}

async function refuseNoCard({ obstacle }: Choosable, adapter: Adapter | null): Promise<void> {
  if (adapter === null) {
    const { message = NO_CARD, suggestion } = (await obstacle?.()) ?? {};
    throw new UserError('system', message, suggestion ? { suggestion } : {});
  }
  if (!adapter.isSoftware) return;
  throw new UserError('system', `${adapter.name} is a software adapter, and no graphics card`, {
    suggestion: '--device webgpu takes it all the same',
  });
}

const NO_CARD = 'there is no graphics card that it can use';

/** What somebody who did not ask for the processor should know of what was chosen; null when there is nothing. */
export function noticeOf(
  { device }: EngineWish,
  { engine, passedOver }: ChosenEngine,
): string | null {
  const { info } = engine;
  if (info.isSoftware) {
    const title = DEVICES[info.deviceKind];
    return `${title} has only a software adapter here (${info.device}): it computes on the CPU, slowly`;
  }
  const cards = device === 'auto' ? passedOver.filter((each) => each.device !== 'cpu') : [];
  const [first] = cards;
  if (info.deviceKind !== 'cpu' || first === undefined) return null;
  // What there is says more than what there is not.
  const told = cards.find(({ why }) => why !== NO_CARD);
  if (told === undefined) return 'running on the CPU: no graphics card was found';
  const { engine: name, backend, why, suggestion } = told;
  const remedy = suggestion ? `; to mend it: ${suggestion}` : '';
  return `running on the CPU: ${ENGINES[name]} (${backend}): ${why}${remedy}`;
}

/** Whether it exists on a system. */
export const isFor = (
  { platforms }: Pick<Candidate, 'platforms'>,
  platform: NodeJS.Platform,
): boolean => platforms?.includes(platform) ?? true;

async function openHere(
  candidate: Pick<Candidate, 'device' | 'platforms' | 'open'>,
  options: OpenOptions,
  platform: NodeJS.Platform,
): Promise<Engine> {
  if (isFor(candidate, platform)) return candidate.open(options);
  const { device, platforms = [] } = candidate;
  const systems = platforms.map((each) => SYSTEMS[each] ?? each).join(' and ');
  throw new UserError('system', `${DEVICES[device]} exists on ${systems}`);
}

const SYSTEMS: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'macOS',
  linux: 'Linux',
  win32: 'Windows',
};

/** An engine that is never on such a device. */
function noSuchPair({ engine, device }: EngineWish, candidates: readonly Choosable[]): UserError {
  const title = engine === 'auto' ? 'the engine' : ENGINES[engine];
  const [other] = candidates.filter((each) => isWishedDevice(device, each));
  const where = device === 'gpu' ? 'a graphics card' : device;
  return new UserError('usage', `${title} does not run on ${where}`, {
    ...(other && { suggestion: `--engine ${other.engine} does` }),
  });
}

/** Something of an engine that can be opened on one of its backends. */
export type Openable = Pick<Candidate, 'engine' | 'backend' | 'device'>;

interface Closable {
  close(): Promise<void>;
}

/** What was opened, and how near it comes to what it should compute. */
interface Checked<T> {
  readonly opened: T;
  readonly selfCheck: SelfCheck;
}

interface Usable<T, C> extends Checked<T> {
  readonly way: C;
  /** What would have come first. */
  readonly passedOver: readonly PassedOver[];
}

/**
 * The first of the candidates that can be opened, and passes its check.
 * @throws UserError when there is none.
 */
export async function firstUsable<T extends Closable, C extends Openable>(
  candidates: readonly C[],
  open: (candidate: C) => Promise<T>,
  checkOf: (opened: T) => Promise<SelfCheck>,
): Promise<Usable<T, C>> {
  const passedOver: PassedOver[] = [];
  for (const candidate of candidates) {
    const tried = await tryOpen(candidate, open, checkOf);
    if ('selfCheck' in tried) return { ...tried, way: candidate, passedOver };
    passedOver.push(tried);
  }
  throw noEngine(passedOver);
}

/** What gives a second opinion: on a graphics card the processor, on that the other engine. */
export const otherThan = ({
  name,
  deviceKind,
}: EngineInfo): Pick<EngineWish, 'engine' | 'device'> => ({
  engine: deviceKind === 'cpu' ? (name === 'onnx' ? 'tfjs' : 'onnx') : 'auto',
  device: 'cpu',
});

/** Opens an engine and sees whether it computes what it should. */
export async function tryCandidate(
  candidate: Openable & Pick<Candidate, 'open' | 'platforms'>,
  options: OpenOptions,
): Promise<CheckedEngine | PassedOver> {
  const tried = await tryOpen(
    candidate,
    (each) => openHere(each, options, process.platform),
    selfCheck,
  );
  return 'why' in tried ? tried : { engine: tried.opened, selfCheck: tried.selfCheck };
}

async function tryOpen<T extends Closable, C extends Openable>(
  candidate: C,
  open: (candidate: C) => Promise<T>,
  checkOf: (opened: T) => Promise<SelfCheck>,
): Promise<Checked<T> | PassedOver> {
  const { engine, backend, device } = candidate;
  let opened: T | undefined;
  try {
    opened = await open(candidate);
    const check = await checkOf(opened);
    if (check.passed) return { opened, selfCheck: check };
    await opened.close();
    const why = `its results are wrong: ${check.difference.toExponential(1)} off, where ${check.limit} is allowed`;
    return { engine, backend, device, why };
  } catch (error) {
    await opened?.close();
    const { message, suggestion } = error as Partial<UserError>;
    return {
      engine,
      backend,
      device,
      why: firstLine(message ?? String(error)),
      ...(suggestion && { suggestion }),
    };
  }
}

const firstLine = (text: string) => text.split('\n', 1)[0] ?? '';

function noEngine(passedOver: readonly PassedOver[]): UserError {
  const reasons = passedOver.map(
    ({ engine, backend, why }) => `${ENGINES[engine]} (${backend}): ${why}`,
  );
  const areCards = passedOver.every(({ device }) => device !== 'cpu');
  const what = areCards ? 'no graphics card can be used here' : 'no engine can run here';
  const remedies = [...new Set(passedOver.flatMap(({ suggestion }) => suggestion ?? []))];
  return new UserError('system', `${what}: ${reasons.join('; ')}`, {
    suggestion: remedies.length > 0 ? remedies.join('; or ') : 'see what minimind doctor says',
  });
}
