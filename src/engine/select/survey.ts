/** Survey of every engine with every backend, tried one by one. */
import type { ProblemText } from '../../base/errors.js';
import type { GraphicsAdapter } from '../adapters/graphics-adapter.js';
import type { DeviceName, EngineInfo, EngineName } from '../engine.js';
import type { CheckedEngine } from './devices.js';
import { matchesRequest, tryCandidate } from './devices.js';
import type { CandidateName, EngineCandidate } from './engine-candidates.js';
import { CANDIDATES, installedVersion } from './engine-candidates.js';
import type { SelfCheck } from './self-check.js';
import { productSpeed } from './self-check.js';

/** A candidate and the result of trying it. */
export interface SurveyEntry {
  /** Library. */
  readonly engine: EngineName;
  /** Backend of the library. */
  readonly backend: string;
  /** Device. */
  readonly device: DeviceName;
  /** Package of the backend. */
  readonly package: string;
  /** Version of the package; null when it is not installed. */
  readonly version: string | null;
  /** Reason why it cannot run models; null when it can. */
  readonly problem: string | null;
  /** Suggested fix. */
  readonly remedy: string | null;
  /** Null, like the next two, when it failed its check. */
  readonly info: EngineInfo | null;
  /** A tiny model whose logits are known. */
  readonly selfCheck: SelfCheck | null;
  /** Floating-point operations per second of a product of two matrices of 512 × 512. */
  readonly productFlops: number | null;
}

/**
 * This machine, and the engines that can run models on it.
 * @answer minimind doctor --json
 */
export interface DoctorResult {
  readonly schema: 'minimind/doctor@1';
  /** Version of Node.js. */
  readonly node: string;
  /** Operating system and architecture: `linux-x64`. */
  readonly platform: string;
  /** Processors that this process can use. @integer @minimum 1 */
  readonly processors: number;
  /** Free memory. @count */
  readonly availableBytes: number;
  /** Threads that the engines were tried with. @integer @minimum 1 */
  readonly threads: number;
  /** Every engine with every backend, as tried. */
  readonly engines: readonly SurveyEntry[];
  /** Graphics adapters; null, like their findings, when they were not surveyed. */
  readonly adapters: readonly GraphicsAdapter[] | null;
  /** Obstacles to using the adapters. */
  readonly adapterFindings: readonly ProblemText[] | null;
}

interface EngineSurveyOptions {
  readonly threads: number;
  /** Called with each candidate before it is tried. */
  readonly watch: (name: CandidateName) => void;
  /**
   * Tries one in its own process and returns the output of `doctor --only NAME --json`.
   * @throws Error with the reason for a missing answer.
   */
  readonly apart: (name: CandidateName) => Promise<string>;
}

type KnownCandidate = (typeof CANDIDATES)[number];

/** Tries all candidates that exist on this system. */
export async function surveyEngines(
  { threads, watch, apart }: EngineSurveyOptions,
  candidates: readonly KnownCandidate[] = CANDIDATES,
): Promise<SurveyEntry[]> {
  const entries: SurveyEntry[] = [];
  for (const candidate of candidates.filter((each) => matchesRequest(each, process.platform))) {
    watch(candidate.name);
    // A driver may write to any stream, and crash the process.
    const isNative = candidate.device !== 'cpu' || candidate.isOptional;
    const isRisky = isNative && installedVersion(candidate) !== null;
    entries.push(isRisky ? await tryApart(candidate, apart) : await tryHere(candidate, threads));
  }
  return entries;
}

export async function surveyEngine(name: CandidateName, threads: number): Promise<SurveyEntry> {
  const candidate = CANDIDATES.find((each) => each.name === name);
  if (!candidate) throw new Error(`there is no ${name}`);
  return tryHere(candidate, threads);
}

async function tryHere(candidate: EngineCandidate, threads: number): Promise<SurveyEntry> {
  const tried = await tryCandidate(candidate, { threads, compute: 'f32' });
  if ('why' in tried) return unusable(candidate, tried.why, tried.suggestion);
  return { ...unusable(candidate, null), ...(await measuredEngine(tried)) };
}

async function tryApart(
  candidate: KnownCandidate,
  apart: EngineSurveyOptions['apart'],
): Promise<SurveyEntry> {
  try {
    // The process runs this program, so its output has this type.
    const answer = JSON.parse(await apart(candidate.name)) as Answer;
    if ('engines' in answer) return answer.engines[0];
    return unusable(candidate, answer.message, answer.suggestion);
  } catch (error) {
    const why =
      error instanceof SyntaxError ? 'its answer is not valid JSON' : (error as Error).message;
    return unusable(candidate, why);
  }
}

/** Output of the process that tried one: the command's result or its error. */
type Answer =
  | { readonly engines: readonly [SurveyEntry] }
  | { readonly message: string; readonly suggestion?: string };

function unusable(
  candidate: EngineCandidate,
  problem: string | null,
  remedy?: string,
): SurveyEntry {
  const { engine, backend, device, package: name } = candidate;
  const version = installedVersion(candidate);
  return {
    engine,
    backend,
    device,
    package: name,
    version,
    problem: version === null ? 'it is not installed' : problem,
    remedy: remedy ?? null,
    info: null,
    selfCheck: null,
    productFlops: null,
  };
}

async function measuredEngine({ engine, selfCheck }: CheckedEngine) {
  const productFlops = await productSpeed(engine);
  await engine.close();
  return { info: engine.info, selfCheck, productFlops };
}
