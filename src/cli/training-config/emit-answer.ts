/** The command or config of another program that an answer writes. */
import { usageError } from '../../base/errors.js';
import { endingOf } from '../../base/files/file-endings.js';
import { present } from '../../base/values.js';
import type { EmitName, Emitted, EmittedModel } from '../../estimate/emit/emitted.js';
import { EMIT_PROGRAMS, emitNamesFor } from '../../estimate/emit/emitted.js';
import { machinesOf } from '../../estimate/emit/machines.js';
import type { RunFacts, runOfPlan } from '../../estimate/emit/runs.js';
import type { FitResult } from '../../estimate/fit/fits.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import type { TrainPlanResult } from '../../estimate/training/plan-training.js';
import type { TrainingConfigAnswer } from '../../input/training-config/training-answer.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { generationOf } from '../../model/budget/generation.js';
import { hardwareText, placesVerdict } from '../../report/fit/fit-places.js';
import { pasteable } from '../line/line-mistake.js';
import { isStdout } from '../output.js';
import { emittedModel } from './emitted-model.js';

/** @throws UserError for a file whose ending is that of another language. */
export function refuseOtherLanguage(name: EmitName, output: string | undefined): void {
  if (isStdout(output)) return;
  const { ending } = EMIT_PROGRAMS[name];
  const found = endingOf(output).replace('.yml', '.yaml');
  if (found === ending || found === '.txt') return;
  throw usageError(
    `--emit ${name} writes a ${ending} file, found ${output}`,
    `write --output ${output.slice(0, output.length - endingOf(output).length)}${ending}`,
  );
}

/** First comment of a text: the line that made it. */
const leadOf = (command: string, argv: readonly string[]): string[] => [
  pasteable([command, ...argv]),
];

interface FitToEmit {
  readonly document: unknown;
  readonly facts: Omit<RunFacts, 'model'> & {
    /** Model as the user wrote it. */
    readonly model: string;
    /** Values that were read from a config; absent without one. */
    readonly answer: TrainingConfigAnswer | undefined;
  };
  readonly argv: readonly string[];
}

/** A model that a config gave is named as it is written there: it can be a copy of a published one. */
const namedModel = ({ model, answer, config }: FitToEmit['facts']): EmittedModel =>
  typeof answer?.model === 'string' && config?.model !== undefined
    ? { name: config.model }
    : emittedModel(model);

/** @throws UserError for a program of another purpose than that of the answer. */
export async function emittedOfFit(
  name: EmitName,
  result: FitResult,
  { document, facts, argv, layers }: FitToEmit & { readonly layers: LanguageModel },
): Promise<Emitted> {
  const { purpose: needed, title } = EMIT_PROGRAMS[name];
  const purpose = result.purpose === 'serving' ? 'serving' : 'training';
  if (needed !== purpose) {
    throw usageError(
      `--emit ${name}: ${title} is for ${needed}, and this line asks about ${result.purpose}`,
      `write ${needed === 'training' ? '--for training' : '--for serving'}, or one of ${emitNamesFor(purpose).join(', ')}`,
    );
  }
  if (purpose === 'serving' && generationOf(layers) !== 'tokens') {
    throw usageError(
      `--emit ${name}: the model ${result.pass ? 'is' : 'has'} an encoder, and only commands that serve decoders are written`,
      'leave it out',
    );
  }
  const [lead, verdict] = [leadOf('fit', argv), verdictOf(name, result)];
  const { serving } = result;
  const model = namedModel(facts);
  if (purpose === 'serving' && serving !== null) {
    const { emitServing } = await import('../../estimate/emit/emit-serving.js');
    const comments = present([...lead, verdict]);
    return emitServing(name as 'vllm', { ...result, serving }, model, comments);
  }
  const { emitTraining } = await import('../../estimate/emit/emit-training.js');
  const { runOfFit } = await import('../../estimate/emit/runs.js');
  const run = runOfFit(result, { ...facts, model: model.name });
  if (run === undefined) throw new TypeError('an answer about a training without one');
  const machines = machinesOf(result.cluster.gpus, result.cluster);
  return emitTraining(name as 'axolotl', { run, document, model, machines, verdict }, lead);
}

interface PlanToEmit extends FitToEmit {
  readonly cluster: Cluster | undefined;
  readonly values: Parameters<typeof runOfPlan>[2];
  readonly recompute: Parameters<typeof runOfPlan>[3];
  readonly axes: Parameters<typeof runOfPlan>[4];
}

/** The config of a trainer for a plan of a training. */
export async function emittedOfPlan(
  name: EmitName,
  result: TrainPlanResult,
  { document, cluster, facts, argv, values, recompute, axes }: PlanToEmit,
): Promise<Emitted> {
  const { emitTraining } = await import('../../estimate/emit/emit-training.js');
  const { runOfPlan: asRun } = await import('../../estimate/emit/runs.js');
  const model = namedModel(facts);
  const run = asRun(result, { ...facts, model: model.name }, values, recompute, axes);
  const machines = machinesOf(result.size.gpus, cluster);
  return emitTraining(
    name as 'axolotl',
    { run, document, model, machines },
    leadOf('train-plan', argv),
  );
}

/** A plan that does not fit is written all the same, and says so. Only llama.cpp has weights in system memory. */
function verdictOf(
  name: EmitName,
  { serving, training, adapters, purpose, cluster }: FitResult,
): string | undefined {
  if (name === 'llama-server' && serving?.places) {
    const { text } = placesVerdict(serving.places, cluster);
    return text.charAt(0).toLowerCase() + text.slice(1);
  }
  const fit = purpose === 'serving' ? serving?.fit : (adapters?.fit ?? training?.fit);
  const on = `on ${hardwareText(cluster)} (estimate)`;
  switch (fit?.verdict) {
    case 'fits':
      return `fits ${on}`;
    case undefined:
      return undefined;
    case 'may fit':
      return `may not fit ${on}`;
    default:
      return `${fit?.verdict} ${on}`;
  }
}
