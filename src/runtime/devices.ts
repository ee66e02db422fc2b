/** Which engine runs a model: found, checked, chosen and explained. */
import { UserError } from '../errors.js';
import { CANDIDATES, type Candidate, installedVersion } from './candidates.js';
import { ENGINES, type Engine, type EngineName } from './engine.js';
import { type SelfCheck, selfCheck } from './self-check.js';

export type EngineChoice = EngineName | 'auto';

/** A way of computing that cannot be used here. */
export interface PassedOver {
  readonly engine: EngineName;
  readonly backend: string;
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

export interface EngineWish {
  readonly engine: EngineChoice;
  /** That one run may take, where the library lets one choose. */
  readonly threads: number;
}

/**
 * Opens the engine that is asked for with its fastest backend, or under `auto` the fastest of all, of those
 * that compute what they should.
 * @throws UserError when there is none.
 */
export async function chooseEngine(
  wish: EngineWish,
  candidates: readonly Choosable[] = CANDIDATES.filter(({ isAutomatic }) => isAutomatic),
): Promise<ChosenEngine> {
  const there = candidates.filter((each) => !each.isOptional || installedVersion(each) !== null);
  const { opened, selfCheck: check, passedOver } = await firstUsable(wish, there, selfCheck);
  return { engine: opened, selfCheck: check, passedOver };
}

/** Something of an engine that can be opened on one of its backends. */
export interface Openable<T> extends Pick<Candidate, 'engine' | 'backend'> {
  readonly open: (threads: number) => Promise<T>;
}

type Choosable = Openable<Engine> & Pick<Candidate, 'isOptional' | 'package'>;

interface Closable {
  close(): Promise<void>;
}

/** What was opened, and how near it comes to what it should compute. */
interface Checked<T> {
  readonly opened: T;
  readonly selfCheck: SelfCheck;
}

interface Usable<T> extends Checked<T> {
  readonly way: Openable<T>;
  /** What would have come first. */
  readonly passedOver: readonly PassedOver[];
}

/**
 * The first of the candidates that is of the engine that is asked for, can be opened, and passes its check.
 * @throws UserError when there is none.
 */
export async function firstUsable<T extends Closable>(
  { engine: choice, threads }: EngineWish,
  candidates: readonly Openable<T>[],
  checkOf: (opened: T) => Promise<SelfCheck>,
): Promise<Usable<T>> {
  const passedOver: PassedOver[] = [];
  for (const candidate of candidates) {
    if (choice !== 'auto' && candidate.engine !== choice) continue;
    const tried = await tryOpen(candidate, threads, checkOf);
    if ('selfCheck' in tried) return { ...tried, way: candidate, passedOver };
    passedOver.push(tried);
  }
  throw noEngine(passedOver);
}

/** The other engine than one that is in use, for a second opinion. */
export const otherThan = (name: EngineName): EngineName => (name === 'onnx' ? 'tfjs' : 'onnx');

/** Opens an engine and sees whether it computes what it should. */
export async function tryCandidate(
  candidate: Openable<Engine>,
  threads: number,
): Promise<CheckedEngine | PassedOver> {
  const tried = await tryOpen(candidate, threads, selfCheck);
  return 'why' in tried ? tried : { engine: tried.opened, selfCheck: tried.selfCheck };
}

async function tryOpen<T extends Closable>(
  { engine: name, backend, open }: Openable<T>,
  threads: number,
  checkOf: (opened: T) => Promise<SelfCheck>,
): Promise<Checked<T> | PassedOver> {
  let opened: T | undefined;
  try {
    opened = await open(threads);
    const check = await checkOf(opened);
    if (check.passed) return { opened, selfCheck: check };
    await opened.close();
    const why = `its results are wrong: ${check.difference.toExponential(1)} off, where ${check.limit} is allowed`;
    return { engine: name, backend, why };
  } catch (error) {
    await opened?.close();
    const { message, suggestion } = error as Partial<UserError>;
    return {
      engine: name,
      backend,
      why: firstLine(message ?? String(error)),
      ...(suggestion && { suggestion }),
    };
  }
}

const firstLine = (text: string) => text.split('\n', 1)[0] ?? '';

function noEngine(passedOver: readonly PassedOver[]): UserError {
  const [first] = passedOver;
  const reasons = passedOver.map(
    ({ engine, backend, why }) => `${ENGINES[engine]} (${backend}): ${why}`,
  );
  return new UserError('system', `no engine can run here: ${reasons.join('; ')}`, {
    suggestion: first?.suggestion ?? 'see what minimind doctor says',
  });
}
