/** Which engine runs a model: found, checked, chosen and explained. */
import { UserError } from '../errors.js';
import { ENGINES, type Engine, type EngineName } from './engine.js';
import { type SelfCheck, selfCheck } from './self-check.js';

export interface EngineOptions {
  /** That one run may take, where the library lets one choose. */
  readonly threads: number;
}

type Open = (options: EngineOptions) => Promise<Engine>;

/** The engines, the fastest first; each is loaded when it is wanted. */
const OPENERS = {
  onnx: async (options) => (await import('./onnx/engine.js')).openOnnx(options),
  tfjs: async (options) => (await import('./tfjs/engine.js')).openTfjs(options),
} as const satisfies Record<EngineName, Open>;

const ENGINE_NAMES = Object.keys(OPENERS) as readonly EngineName[];

export type EngineChoice = EngineName | 'auto';

/** An engine that cannot be used here. */
export interface PassedOver {
  readonly engine: EngineName;
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
  /** Those that would have come first. */
  readonly passedOver: readonly PassedOver[];
}

/**
 * Opens the engine that is asked for, or under `auto` the fastest that computes what it should.
 * @throws UserError when there is none.
 */
export async function chooseEngine(
  { engine: choice, threads }: EngineOptions & { readonly engine: EngineChoice },
  openers: Readonly<Record<EngineName, Open>> = OPENERS,
): Promise<ChosenEngine> {
  const { found, passedOver } = await firstUsable(choice, (name) =>
    tryEngine(name, () => openers[name]({ threads })),
  );
  return { ...found, passedOver };
}

/**
 * What is asked for, or under `auto` the first that can be used.
 * @throws UserError when there is none.
 */
export async function firstUsable<T extends object>(
  choice: EngineChoice,
  attempt: (name: EngineName) => Promise<T | PassedOver>,
): Promise<{ readonly found: T; readonly passedOver: readonly PassedOver[] }> {
  const passedOver: PassedOver[] = [];
  for (const name of choice === 'auto' ? ENGINE_NAMES : [choice]) {
    const tried = await attempt(name);
    if (!('why' in tried)) return { found: tried, passedOver };
    passedOver.push(tried);
  }
  throw noEngine(passedOver);
}

/** The other engine than one that is in use, for a second opinion. */
export const otherThan = (name: EngineName): EngineName => (name === 'onnx' ? 'tfjs' : 'onnx');

/** Opens an engine and sees whether it computes what it should. */
export async function tryEngine(
  name: EngineName,
  open: () => Promise<Engine>,
): Promise<CheckedEngine | PassedOver> {
  const tried = await tryOpen(name, open, selfCheck);
  return 'why' in tried ? tried : { engine: tried.opened, selfCheck: tried.check };
}

/** Opens something of an engine and sees whether it computes what it should; closes it when not. */
export async function tryOpen<T extends { close(): Promise<void> }>(
  name: EngineName,
  open: () => Promise<T>,
  checkOf: (opened: T) => Promise<SelfCheck>,
): Promise<{ readonly opened: T; readonly check: SelfCheck } | PassedOver> {
  let opened: T | undefined;
  try {
    opened = await open();
    const check = await checkOf(opened);
    if (check.passed) return { opened, check };
    await opened.close();
    const why = `its results are wrong: ${check.difference.toExponential(1)} off, where ${check.limit} is allowed`;
    return { engine: name, why };
  } catch (error) {
    await opened?.close();
    const { message, suggestion } = error as Partial<UserError>;
    return {
      engine: name,
      why: firstLine(message ?? String(error)),
      ...(suggestion && { suggestion }),
    };
  }
}

const firstLine = (text: string) => text.split('\n', 1)[0] ?? '';

function noEngine(passedOver: readonly PassedOver[]): UserError {
  const [first] = passedOver;
  const reasons = passedOver.map(({ engine, why }) => `${ENGINES[engine]}: ${why}`);
  return new UserError('system', `no engine can run here: ${reasons.join('; ')}`, {
    suggestion: first?.suggestion ?? 'see what minimind doctor says',
  });
}
