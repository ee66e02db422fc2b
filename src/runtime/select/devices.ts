/** Which engine runs a model, and on what: found, checked, chosen and explained. */
import type { LanguageModel } from '../../architecture/layer.js';
import { UserError } from '../../errors.js';
import type { Adapter } from '../adapters/adapters.js';
import type { CallSize, DeviceName, Engine, EngineInfo, EngineName } from '../engine.js';
import { DEVICES, ENGINES } from '../engine.js';
import type { Candidate, OpenOptions } from './candidates.js';
import { CANDIDATES, installedVersion } from './candidates.js';
import type { SelfCheck } from './self-check.js';
import { selfCheck } from './self-check.js';

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
      return openHere(candidate, { ...wish, acceptsSoftware: !isAnyCard(wish) }, platform);
    },
    selfCheck,
  );
  return { engine: opened, selfCheck: check, passedOver };
}

/** Models, and the tokens that each is to run on. */
export interface ModelsToRun extends CallSize {
  readonly models: readonly LanguageModel[];
}

/**
 * The same for models: under `auto` a card that cannot run so many tokens is passed over for the processor.
 * @param notice Told what the user should know of the choice.
 * @throws UserError as `chooseEngine`.
 */
export async function chooseEngineFor(
  { models, ...size }: ModelsToRun,
  wish: EngineWish,
  notice: (text: string) => void,
  choose: (wish: EngineWish) => Promise<ChosenEngine> = chooseEngine,
): Promise<ChosenEngine> {
  const chosen = await choose(wish);
  const obstacle =
    wish.device === 'auto'
      ? models.map((model) => chosen.engine.obstacleTo?.(model, size)).find((each) => each)
      : undefined;
  if (obstacle === undefined) {
    const text = noticeOf(wish, chosen);
    if (text !== null) notice(text);
    return chosen;
  }
  await chosen.engine.close();
  notice(`running on the CPU: ${obstacle.message}`);
  return choose({ ...wish, device: 'cpu' });
}

const isWished = ({ engine, device, compute }: EngineWish, candidate: Choosable): boolean =>
  (engine === 'auto' || candidate.engine === engine) &&
  (candidate.computes ?? [compute]).includes(compute) &&
  isWishedDevice(device, candidate);

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

/** What the user should know of what was chosen among several; null when there is nothing. */
export function noticeOf(
  { device }: Pick<EngineWish, 'device'>,
  { engine, passedOver }: ChosenEngine,
): string | null {
  const { info } = engine;
  if (info.isSoftware) {
    const title = DEVICES[info.deviceKind];
    return `${title} has only a software adapter here (${info.device}): it computes on the CPU, slowly`;
  }
  const cards = passedOver.filter((each) => each.device !== 'cpu');
  // What there is says more than what there is not.
  const told = cards.find(({ why }) => why !== NO_CARD);
  if (told !== undefined) {
    const { engine: name, backend, why, suggestion } = told;
    const remedy = suggestion ? `; to mend it: ${suggestion}` : '';
    return `running on ${DEVICES[info.deviceKind]}: ${ENGINES[name]} (${backend}): ${why}${remedy}`;
  }
  const isDisappointing = device === 'auto' && info.deviceKind === 'cpu' && cards.length > 0;
  return isDisappointing ? 'running on the CPU: no graphics card was found' : null;
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

/** An engine that is never on such a device, or never computes so. */
function noSuchPair(wish: EngineWish, candidates: readonly Choosable[]): UserError {
  const { engine, device, compute } = wish;
  const title = engine === 'auto' ? 'the engine' : ENGINES[engine];
  const isOnDevice = candidates.some((each) => isWished({ ...wish, compute: 'f32' }, each));
  const other = candidates.find((each) => isWished({ ...wish, engine: 'auto' }, each));
  const where = device === 'gpu' ? 'a graphics card' : device;
  return new UserError(
    'usage',
    isOnDevice ? `${title} does not compute in ${compute}` : `${title} does not run on ${where}`,
    { ...(other && { suggestion: `--engine ${other.engine} does` }) },
  );
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

/** Whether what is asked for is what runs already. */
export const isSameWay = (
  { name, deviceKind, compute }: EngineInfo,
  wish: Pick<EngineWish, 'engine' | 'device' | 'compute'>,
): boolean =>
  wish.compute === compute &&
  (wish.engine === 'auto' || wish.engine === name) &&
  (wish.device === 'auto' ||
    wish.device === deviceKind ||
    (wish.device === 'gpu' && deviceKind !== 'cpu'));

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
    suggestion: remedies.length > 0 ? remedies.join('; or ') : 'minimind doctor says what there is',
  });
}
