/** Selects, checks and explains the engine and device for a model. */

import { UserError, usageError } from '../../base/errors.js';
import type { Platform } from '../../base/platform.js';
import { commandText, setting } from '../../base/text/setting.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { describedLayer } from '../../model/architecture/walk.js';
import type { GraphicsAdapter } from '../adapters/adapters.js';
import { describedOnly } from '../calls.js';
import type { CallSize, DeviceName, Engine, EngineInfo, EngineName } from '../engine.js';
import { DEVICES, ENGINES } from '../engine.js';
import type { EngineCandidate, EngineOptions } from './engine-candidates.js';
import { CANDIDATES, installedVersion } from './engine-candidates.js';
import type { SelfCheck } from './self-check.js';
import { selfCheck } from './self-check.js';

export type EngineChoice = EngineName | 'auto';

/** `gpu` is any graphics card; `auto` a usable graphics card, else the processor. */
export type DeviceChoice = DeviceName | 'gpu' | 'auto';

/** A candidate that cannot be used here. */
export interface SkippedEngine {
  /** Library. */
  readonly engine: EngineName;
  /** Backend of the library. */
  readonly backend: string;
  /** Device. */
  readonly device: DeviceName;
  /** Reason why it cannot be used. */
  readonly why: string;
  /** How to fix it. */
  readonly suggestion?: string;
}

/** An engine that passed its self-check. */
export interface CheckedEngine {
  readonly engine: Engine;
  readonly selfCheck: SelfCheck;
}

export interface ChosenEngine extends CheckedEngine {
  /** Candidates of higher priority that were skipped, except optional packages that are not installed. */
  readonly passedOver: readonly SkippedEngine[];
}

export interface EngineRequest extends EngineOptions {
  readonly engine: EngineChoice;
  readonly device: DeviceChoice;
}

type Choosable = Omit<EngineCandidate, 'name'>;

/**
 * Opens the requested engine on the requested device, or under `auto` the fastest, if it passes its self-check. A
 * software adapter is used only when requested by name.
 * @throws UserError when there is none.
 */
export async function chooseEngine(
  wish: EngineRequest,
  candidates: readonly Choosable[] = CANDIDATES,
  platform: Platform = process.platform,
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
    (engine, candidate) => checkOnce(engine, candidate, wish),
  );
  return { engine: opened, selfCheck: check, passedOver };
}

/** Passed checks of engines on the processor, by their settings. */
const passedChecks = new WeakMap<Choosable, Map<string, SelfCheck>>();

/**
 * Checks an engine on the CPU once in a process, because the same code with the same settings computes the same. A
 * graphics card can be lost, so it is checked each time.
 */
async function checkOnce(
  engine: Engine,
  candidate: Choosable,
  { threads, compute }: EngineOptions,
): Promise<SelfCheck> {
  if (candidate.device !== 'cpu') return selfCheck(engine);
  const passed = passedChecks.get(candidate) ?? new Map<string, SelfCheck>();
  passedChecks.set(candidate, passed);
  const key = `${threads} ${compute}`;
  const known = passed.get(key);
  if (known) return known;
  const check = await selfCheck(engine);
  if (check.passed) passed.set(key, check);
  return check;
}

/** Models, and the number of tokens of each run. */
export interface ModelsToRun extends CallSize {
  readonly models: readonly LanguageModel[];
}

/**
 * Chooses an engine for models: under `auto` a card that cannot run this number of tokens is skipped for the processor.
 * @param notice Receives notices about the choice for the user.
 * @throws UserError as `chooseEngine`.
 */
export async function chooseEngineFor(
  { models, ...size }: ModelsToRun,
  wish: EngineRequest,
  notice: (text: string) => void,
): Promise<ChosenEngine> {
  for (const model of models) {
    const layer = describedLayer(model);
    if (layer) throw describedOnly(layer);
  }
  const chosen = await chooseEngine(wish);
  const obstacle =
    wish.device === 'auto'
      ? models.map((model) => chosen.engine.obstacleTo?.(model, size)).find((each) => each)
      : undefined;
  if (obstacle === undefined) {
    const text = engineNotice(wish, chosen);
    if (text !== null) notice(text);
    return chosen;
  }
  await chosen.engine.close();
  notice(`running on the CPU: ${obstacle.message}`);
  return chooseEngine({ ...wish, device: 'cpu' });
}

const isWished = ({ engine, device, compute }: EngineRequest, candidate: Choosable): boolean =>
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

const isAnyCard = ({ device }: EngineRequest): boolean => device === 'auto' || device === 'gpu';

/** Whether its absence need not be reported: it is for other systems, or was never installed. */
const isExpected = (wish: EngineRequest, candidate: Choosable, platform: Platform): boolean => {
  const isNamed = candidate.device !== 'cpu' && wish.device !== 'auto';
  const isHere = matchesRequest(candidate, platform);
  const isInstalled = !candidate.isOptional || installedVersion(candidate) !== null;
  return wish.device === candidate.device || (isHere && (isNamed || isInstalled));
};

const cardsFirst = <T extends Choosable>(candidates: readonly T[]): T[] =>
  candidates.toSorted((a, b) => Number(a.device === 'cpu') - Number(b.device === 'cpu'));

/** Rejects a candidate that cannot work, without trying it. */
async function refuseUnfit(wish: EngineRequest, candidate: Choosable): Promise<void> {
  const isAny = isAnyCard(wish);
  if (!candidate.adapter || (!isAny && wish.compute === 'f32')) return;
  const adapter = await candidate.adapter();
  if (isAny) await refuseNoCard(candidate, adapter);
  if (wish.compute === 'f32' || adapter?.hasFloat16 !== false) return;
  throw new UserError('system', `${adapter.name} does not compute in float16`, {
    suggestion: setting('compute', 'f32'),
  });
}

async function refuseNoCard(
  { obstacle }: Choosable,
  adapter: GraphicsAdapter | null,
): Promise<void> {
  if (adapter === null) {
    const { message = NO_CARD, suggestion } = (await obstacle?.()) ?? {};
    throw new UserError('system', message, suggestion ? { suggestion } : {});
  }
  if (!adapter.isSoftware) return;
  throw new UserError('system', `${adapter.name} is a software adapter, not a graphics card`, {
    suggestion: `write ${setting('device', 'webgpu')} to use it anyway`,
  });
}

const NO_CARD = 'no graphics card that it can use';

/** Notice for the user about a choice among several; null when there is nothing to report. */
export function engineNotice(
  { device }: Pick<EngineRequest, 'device'>,
  { engine, passedOver: skipped }: ChosenEngine,
): string | null {
  const { info } = engine;
  if (info.isSoftware) {
    const title = DEVICES[info.deviceKind];
    return `${title} has only a software adapter here (${info.device}): it computes on the CPU, slowly`;
  }
  const cards = skipped.filter((each) => each.device !== 'cpu');
  // A finding about an existing card explains more than the absence of a card.
  const known = cards.find(({ why }) => why !== NO_CARD);
  if (known !== undefined) {
    const { engine: name, backend, why, suggestion } = known;
    const remedy = suggestion ? `; to fix it: ${suggestion}` : '';
    return `running on ${DEVICES[info.deviceKind]}: ${ENGINES[name]} (${backend}): ${why}${remedy}`;
  }
  const isDisappointing = device === 'auto' && info.deviceKind === 'cpu' && cards.length > 0;
  return isDisappointing ? 'running on the CPU: no graphics card was found' : null;
}

/** Whether a candidate exists on a system. */
export const matchesRequest = (
  { platforms }: Pick<EngineCandidate, 'platforms'>,
  platform: Platform,
): boolean => platforms?.includes(platform) ?? true;

async function openHere(
  candidate: Pick<EngineCandidate, 'device' | 'platforms' | 'open'>,
  options: EngineOptions,
  platform: Platform,
): Promise<Engine> {
  if (matchesRequest(candidate, platform)) return candidate.open(options);
  const { device, platforms = [] } = candidate;
  const systems = platforms.map((each) => SYSTEMS[each] ?? each).join(' and ');
  throw new UserError('system', `${DEVICES[device]} exists on ${systems}`);
}

const SYSTEMS: Partial<Record<Platform, string>> = {
  darwin: 'macOS',
  linux: 'Linux',
  win32: 'Windows',
};

/** Error for an engine that does not support the device or the number type. */
function noSuchPair(wish: EngineRequest, candidates: readonly Choosable[]): UserError {
  const { engine, device, compute } = wish;
  const title = engine === 'auto' ? 'the engine' : ENGINES[engine];
  const isOnDevice = candidates.some((each) => isWished({ ...wish, compute: 'f32' }, each));
  const other = candidates.find((each) => isWished({ ...wish, engine: 'auto' }, each));
  const where = device === 'gpu' ? 'a graphics card' : device;
  return usageError(
    isOnDevice ? `${title} does not compute in ${compute}` : `${title} does not run on ${where}`,
    other && `${setting('engine', other.engine)} does`,
  );
}

/** Something that can be opened on one of an engine's backends. */
export type EngineChoiceKey = Pick<EngineCandidate, 'engine' | 'backend' | 'device'>;

interface Closable {
  close(): Promise<void>;
}

/** An opened candidate and the result of its check. */
interface CheckedCandidate<T> {
  readonly opened: T;
  readonly selfCheck: SelfCheck;
}

interface UsableCandidate<T, C> extends CheckedCandidate<T> {
  readonly way: C;
  /** Skipped candidates of higher priority. */
  readonly passedOver: readonly SkippedEngine[];
}

/**
 * The first of the candidates that opens and passes its check.
 * @throws UserError when there is none.
 */
export async function firstUsable<T extends Closable, C extends EngineChoiceKey>(
  candidates: readonly C[],
  open: (candidate: C) => Promise<T>,
  checkOf: (opened: T, candidate: C) => Promise<SelfCheck>,
): Promise<UsableCandidate<T, C>> {
  const skipped: SkippedEngine[] = [];
  for (const candidate of candidates) {
    const tried = await tryOpen(candidate, open, checkOf);
    if ('selfCheck' in tried) return { ...tried, way: candidate, passedOver: skipped };
    skipped.push(tried);
  }
  throw noEngine(skipped);
}

/** Whether a request matches the running engine. */
export const isRequestedEngine = (
  { name, deviceKind, compute }: EngineInfo,
  wish: Pick<EngineRequest, 'engine' | 'device' | 'compute'>,
): boolean =>
  wish.compute === compute &&
  (wish.engine === 'auto' || wish.engine === name) &&
  (wish.device === 'auto' ||
    wish.device === deviceKind ||
    (wish.device === 'gpu' && deviceKind !== 'cpu'));

/** Candidate for a cross-check: the processor for a graphics card, the other engine for the processor. */
export const crossCheckTarget = ({
  name,
  deviceKind,
}: EngineInfo): Pick<EngineRequest, 'engine' | 'device'> => ({
  engine: deviceKind === 'cpu' ? (name === 'onnx' ? 'tfjs' : 'onnx') : 'auto',
  device: 'cpu',
});

/** Opens an engine and runs its self-check. */
export async function tryCandidate(
  candidate: EngineChoiceKey & Pick<EngineCandidate, 'open' | 'platforms'>,
  options: EngineOptions,
): Promise<CheckedEngine | SkippedEngine> {
  const tried = await tryOpen(
    candidate,
    (each) => openHere(each, options, process.platform),
    selfCheck,
  );
  return 'why' in tried ? tried : { engine: tried.opened, selfCheck: tried.selfCheck };
}

async function tryOpen<T extends Closable, C extends EngineChoiceKey>(
  candidate: C,
  open: (candidate: C) => Promise<T>,
  checkOf: (opened: T, candidate: C) => Promise<SelfCheck>,
): Promise<CheckedCandidate<T> | SkippedEngine> {
  const { engine, backend, device } = candidate;
  let opened: T | undefined;
  try {
    opened = await open(candidate);
    const check = await checkOf(opened, candidate);
    if (check.passed) return { opened, selfCheck: check };
    await opened.close();
    const why = `its results are wrong: expected a difference of at most ${check.limit}, found ${check.difference.toExponential(1)}`;
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

function noEngine(skipped: readonly SkippedEngine[]): UserError {
  const reasons = skipped.map(
    ({ engine, backend, why }) => `${ENGINES[engine]} (${backend}): ${why}`,
  );
  const areCards = skipped.every(({ device }) => device !== 'cpu');
  const what = areCards ? 'no graphics card can be used here' : 'no engine can run here';
  const remedies = [...new Set(skipped.flatMap(({ suggestion }) => suggestion ?? []))];
  return new UserError('system', `${what}: ${reasons.join('; ')}`, {
    suggestion:
      remedies.length > 0
        ? remedies.join('; or ')
        : `run ${commandText('doctor')} to see the engines`,
  });
}
