/** Every engine with every backend of it, tried one by one. */
import { createRequire } from 'node:module';
import { CANDIDATES, type Candidate } from './candidates.js';
import { type CheckedEngine, tryCandidate } from './devices.js';
import type { EngineInfo, EngineName } from './engine.js';
import { productSpeed, type SelfCheck } from './self-check.js';

/** A way of computing, and what came of trying it. */
export interface SurveyEntry {
  readonly engine: EngineName;
  readonly backend: string;
  readonly package: string;
  /** Of the package; null when it is not installed. */
  readonly version: string | null;
  /** Why no model can run on it; null when models can. */
  readonly problem: string | null;
  /** What would help. */
  readonly remedy: string | null;
  /** Null, like the two that follow, when it does not compute what it should. */
  readonly info: EngineInfo | null;
  readonly selfCheck: SelfCheck | null;
  /** Floating-point operations per second of a product of two matrices of 512 × 512. */
  readonly productFlops: number | null;
}

/** `onnx:cpu`, `tfjs:wasm`, … */
const SURVEY_NAMES: readonly string[] = CANDIDATES.map(nameOf);

function nameOf({ engine, backend }: Candidate): string {
  return `${engine}:${backend}`;
}

interface SurveyOptions {
  readonly threads: number;
  /** Told of each before it is tried. */
  readonly watch: (name: string) => void;
  /**
   * Tries one in a process of its own.
   * @throws Error that says why there is no answer.
   */
  readonly apart: (name: string) => Promise<SurveyEntry>;
}

/** Tries them all. */
export async function surveyEngines({
  threads,
  watch,
  apart,
}: SurveyOptions): Promise<SurveyEntry[]> {
  const entries: SurveyEntry[] = [];
  for (const candidate of CANDIDATES) {
    const name = nameOf(candidate);
    watch(name);
    const isRisky = candidate.usesDrivers && versionOf(candidate) !== null;
    entries.push(isRisky ? await tryApart(candidate, apart) : await tryHere(candidate, threads));
  }
  return entries;
}

/** Tries one, by its name. */
export async function surveyEngine(name: string, threads: number): Promise<SurveyEntry> {
  const candidate = CANDIDATES.find((each) => nameOf(each) === name);
  if (!candidate) throw new Error(`there is no ${name} among ${SURVEY_NAMES.join(', ')}`);
  return tryHere(candidate, threads);
}

async function tryHere(candidate: Candidate, threads: number): Promise<SurveyEntry> {
  const tried = await tryCandidate(candidate, threads);
  if ('why' in tried) return unusable(candidate, tried.why, tried.suggestion);
  return { ...unusable(candidate, null), ...(await measured(tried)) };
}

async function tryApart(candidate: Candidate, apart: SurveyOptions['apart']): Promise<SurveyEntry> {
  try {
    return await apart(nameOf(candidate));
  } catch (error) {
    return unusable(candidate, (error as Error).message);
  }
}

function unusable(candidate: Candidate, problem: string | null, remedy?: string): SurveyEntry {
  const { engine, backend, package: name } = candidate;
  const version = versionOf(candidate);
  return {
    engine,
    backend,
    package: name,
    version,
    problem: version === null ? 'it is not installed' : problem,
    remedy: remedy ?? null,
    info: null,
    selfCheck: null,
    productFlops: null,
  };
}

async function measured({ engine, selfCheck }: CheckedEngine) {
  const productFlops = await productSpeed(engine);
  await engine.close();
  return { info: engine.info, selfCheck, productFlops };
}

/** Without loading the package. */
function versionOf({ package: name }: Candidate): string | null {
  try {
    const manifest: unknown = createRequire(import.meta.url)(`${name}/package.json`);
    return (manifest as { readonly version: string }).version;
  } catch {
    return null;
  }
}
