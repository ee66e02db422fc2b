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

interface EngineWish {
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
  { engine: choice, threads }: EngineWish,
  candidates: readonly Choosable[] = CANDIDATES.filter(({ isAutomatic }) => isAutomatic),
): Promise<ChosenEngine> {
  const passedOver: PassedOver[] = [];
  for (const candidate of candidates) {
    if (choice !== 'auto' && candidate.engine !== choice) continue;
    if (candidate.isOptional && installedVersion(candidate) === null) continue;
    const tried = await tryCandidate(candidate, threads);
    if ('selfCheck' in tried) return { ...tried, passedOver };
    passedOver.push(tried);
  }
  throw noEngine(passedOver);
}

/** The other engine than one that is in use, for a second opinion. */
export const otherThan = (name: EngineName): EngineName => (name === 'onnx' ? 'tfjs' : 'onnx');

type Tryable = Pick<Candidate, 'engine' | 'backend' | 'open'>;
type Choosable = Tryable & Pick<Candidate, 'isOptional' | 'package'>;

/** Opens an engine and sees whether it computes what it should. */
export async function tryCandidate(
  { engine: name, backend, open }: Tryable,
  threads: number,
): Promise<CheckedEngine | PassedOver> {
  let engine: Engine | undefined;
  try {
    engine = await open(threads);
    const check = await selfCheck(engine);
    if (check.passed) return { engine, selfCheck: check };
    await engine.close();
    const why = `its results are wrong: ${check.difference.toExponential(1)} off, where ${check.limit} is allowed`;
    return { engine: name, backend, why };
  } catch (error) {
    await engine?.close();
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
