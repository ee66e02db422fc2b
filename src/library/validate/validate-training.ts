/** `validate` of the config of a training of another program. */
import { type Problem, UserError, usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { asNumber, isRecord } from '../../base/values.js';
import { invalidConfig } from '../../config/document-problems.js';
import { dividedExperts } from '../../estimate/fit/parallelism/model-axes.js';
import type { ModelFile, ModelLoadOptions } from '../../input/model-input/model-file.js';
import { loadModelFile } from '../../input/model-input/read-model-file.js';
import { headsNotDivided } from '../../input/training-config/findings.js';
import { modelOfConfig, modelProblem } from '../../input/training-config/model-of-config.js';
import { trainingConfigIn } from '../../input/training-config/read-training-config.js';
import type { TrainingConfig } from '../../input/training-config/training-config.js';
import type { RunField } from '../../input/training-config/training-run.js';
import { countParameters } from '../../model/budget/parameters.js';
import type { ValidFile } from '../../report/command-results.js';

/** Programs whose configs are beside a model, which the command or the code names. */
const WITHOUT_MODEL: ReadonlySet<string> = new Set(['deepspeed', 'accelerate', 'transformers']);

/**
 * Checks the config of a training, with its model where that is on this machine.
 * @returns Undefined for another file.
 * @throws UserError with every problem, when it is not valid.
 */
export async function validTraining(
  path: string,
  { set = [], family, strict = false }: ModelLoadOptions,
): Promise<ValidFile | undefined> {
  const config = await trainingConfigIn(path);
  if (config === undefined) return undefined;
  if (set.length > 0 || family !== undefined) {
    throw usageError(
      `${setting(set.length > 0 ? 'set' : 'family')} is for configs of models, and ${path} is a training with ${config.program.title}`,
      'leave it out',
    );
  }
  const unread = modelProblem(config);
  const loaded = unread ? undefined : await modelIn(config);
  const all = [...config.problems, ...(unread ? [unread] : modelProblems(config, loaded))];
  const problems = strict ? all.map((each) => ({ ...each, severity: 'error' as const })) : all;
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  if (errors > 0) throw invalidConfig(path, problems, errors);
  const model = loaded instanceof UserError ? undefined : loaded;
  return {
    file: path,
    valid: true,
    family: model?.family.name ?? null,
    parameters: model ? countParameters(model.model).parameters : null,
    program: config.program.title,
    warnings: problems,
  };
}

/** The model of a config; undefined without one, and for one of the hub, which is not read for a check. */
async function modelIn(config: TrainingConfig): Promise<ModelFile | UserError | undefined> {
  const model = modelOfConfig(config);
  if (model === undefined || model.reference.startsWith('hf:')) return undefined;
  try {
    return await loadModelFile(model.reference);
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
}

/** Expert parallelism without experts, which only Megatron-LM refuses (arguments.py), or that does not divide them. */
function expertsProblem(
  { model }: ModelFile,
  { run: { expertParallel = 1 }, name, placeOf }: TrainingConfig,
): Problem | undefined {
  const experts = dividedExperts(model);
  if (expertParallel === 1 || (experts > 0 && experts % expertParallel === 0)) return undefined;
  const place = placeOf('expertParallel');
  if (experts === 0) {
    return {
      severity: name === 'megatron' ? 'error' : 'warning',
      ...place,
      message: `expert parallelism of ${formatInteger(expertParallel)} has no experts to divide: the model has none`,
      suggestion: 'leave it out',
    };
  }
  return {
    severity: 'error',
    ...place,
    message: `expert parallelism of ${formatInteger(expertParallel)} does not divide ${formatInteger(experts)} experts`,
    suggestion: `use a divisor of ${formatInteger(experts)}`,
  };
}

function modelProblems(
  config: TrainingConfig,
  loaded: ModelFile | UserError | undefined,
): Problem[] {
  const { run, file, name } = config;
  const at = (
    field: RunField,
    severity: Problem['severity'],
    message: string,
    suggestion: string,
  ) => ({
    severity,
    ...config.placeOf(field),
    message,
    suggestion,
  });
  if (loaded === undefined) {
    const hasModel = run.model !== undefined || run.sizes !== undefined;
    if (hasModel || WITHOUT_MODEL.has(name)) return [];
    return [
      {
        severity: 'error',
        file,
        message: 'no model: neither its name nor its sizes are in the file',
        suggestion: `write the key of ${config.program.title} that names it`,
      },
    ];
  }
  if (loaded instanceof UserError) {
    const field = run.sizes === undefined ? 'model' : 'sizes';
    return [
      at(field, 'warning', `its model cannot be described: ${loaded.message}`, 'correct its sizes'),
    ];
  }
  const experts = expertsProblem(loaded, config);
  const ofExperts = experts ? [experts] : [];
  // Sizes were compared with the settings when they were read.
  if (run.sizes !== undefined) return ofExperts;
  const { positions } = loaded.model;
  const { model: sizes } = loaded.document as { readonly model?: unknown };
  const heads = isRecord(sizes)
    ? asNumber(sizes.num_attention_heads ?? sizes.num_heads)
    : Number.NaN;
  const { context, tensorParallel = 1 } = run;
  const problem = Number.isSafeInteger(heads)
    ? headsNotDivided(heads, tensorParallel, (field, message, suggestion) =>
        at(field, 'error', message, suggestion),
      )
    : undefined;
  return [
    ...ofExperts,
    ...(problem ? [problem] : []),
    ...(context !== undefined && context > positions
      ? [
          at(
            'context',
            'error',
            `sequences of ${formatInteger(context)} tokens are longer than the ${formatInteger(positions)} positions of the model`,
            `use at most ${formatInteger(positions)}`,
          ),
        ]
      : []),
  ];
}
