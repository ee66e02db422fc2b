/** The configs of a conversion: those of the input and of the output. */

import { isDeepStrictEqual } from 'node:util';
import { type Problem, UserError, usageError } from '../../../base/errors.js';
import type { ConfigFormat } from '../../../base/files/config-names.js';
import type { EncodableDtype } from '../../../base/tensor/encode.js';
import { commandText, setting } from '../../../base/text/setting.js';
import { capital } from '../../../base/text/words.js';
import { isRecord } from '../../../base/values.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { faultText } from '../../../checkpoint/reconcile/fault-texts.js';
import {
  type IgnoredTensors,
  ignoredIn,
  ignoredText,
} from '../../../checkpoint/reconcile/ignored-tensors.js';
import type { Reconciliation } from '../../../checkpoint/reconcile/reconcile.js';
import { reconcile } from '../../../checkpoint/reconcile/reconcile.js';
import { TORCH_TYPES } from '../../../checkpoint/torch/pickle/globals.js';
import type { ConfigDocument } from '../../../config/document.js';
import { documentText } from '../../../config/document.js';
import { formatPath, splitDotted, valueAt } from '../../../config/quote.js';
import type { ConfigOrigin } from '../../../input/model-input/checkpoint/checkpoint-config.js';
import {
  adjustedToCheckpoint,
  descriptionOf,
  findConfig,
} from '../../../input/model-input/checkpoint/checkpoint-config.js';
import {
  configByFlag,
  withoutConfig,
} from '../../../input/model-input/checkpoint/required-config.js';
import {
  asOurDocument,
  changedHuggingFace,
  isHuggingFace,
} from '../../../input/model-input/hugging-face/hugging-face-document.js';
import type { ModelFile } from '../../../input/model-input/model-file.js';
import { modelOf, overridden } from '../../../input/model-input/model-file.js';
import { readConfig } from '../../../input/model-input/read-model-file.js';
import type { Ignored, ModelChange, Setting } from '../../../model/architecture/family.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { ConversionJob } from '../job.js';

/** A config that matches its checkpoint. */
export interface SourceConfig extends ModelFile {
  readonly written: ConfigDocument;
  readonly origin: ConfigOrigin;
  /** Family that it was read as, even if its own kind is another. */
  readonly readAs: string | undefined;
  /** Tensors of the checkpoint that transformers ignores. */
  readonly ignored: IgnoredTensors | undefined;
}

/**
 * A remark on the tensors that transformers ignores, if there are some.
 * @param fate What happens to them in the conversion.
 */
export function ignoredNote(source: SourceConfig | undefined, fate: string): readonly string[] {
  const text = source?.ignored && ignoredText(source.ignored);
  return text === undefined ? [] : [`${capital(text)}: ${fate}`];
}

/** Whether a remark is an `ignoredNote`, for any fate. */
export const isIgnoredNote = (note: string, source: SourceConfig): boolean =>
  ignoredNote(source, '').some((start) => note.startsWith(start));

/** A config, or none, with warnings about one that cannot be used. */
interface FoundSource {
  readonly source: SourceConfig | undefined;
  readonly warnings: readonly Problem[];
}

/**
 * The config of a checkpoint, if there is one.
 * @throws UserError when the checkpoint does not match it, the given config cannot be read, or a conversion that
 * requires one has none.
 */
export async function sourceConfigOf(job: ConversionJob): Promise<FoundSource> {
  const found = await usableConfig(job);
  const { quantize, prove, container, noConfig, dialect, checkpoint } = job;
  const isRequired = quantize !== undefined || prove || container === 'gguf';
  const isMissing = found.source === undefined && found.warnings.length === 0;
  if (isRequired && isMissing && !noConfig && dialect === undefined) {
    throw await withoutConfig(checkpoint, configByFlag);
  }
  return found;
}

async function usableConfig(job: ConversionJob): Promise<FoundSource> {
  const { checkpoint, config, family: readAs } = job;
  const none = { source: undefined, warnings: [] };
  if (job.noConfig) {
    return (await hasConfig(checkpoint)) ? none : { ...none, warnings: [idleNoConfig(checkpoint)] };
  }
  // Configs do not describe models with old names.
  if (config === undefined && job.dialect !== undefined) return none;
  try {
    const found = await findConfig(checkpoint, config);
    if (found === undefined) {
      if (readAs !== undefined) throw familyOfNothing(checkpoint);
      return none;
    }
    const loaded = adjustedToCheckpoint(
      await modelOf(found.document, { family: readAs }),
      checkpoint,
    );
    const watch = (bytes: number) => job.display.step('comparing', bytes);
    const compared = await reconcile(descriptionOf(loaded), checkpoint, watch);
    if (!compared.matches) throw unlike(checkpoint.path, loaded.file, compared);
    const ignored = ignoredIn(compared.notes);
    const { document: written, origin } = found;
    const source = { ...loaded, written, origin, readAs, ignored };
    return { source, warnings: loaded.warnings };
  } catch (error) {
    const isGiven = config !== undefined || readAs !== undefined;
    if (isGiven || !(error instanceof UserError) || error instanceof Unlike) throw error;
    const reasons = error.problems.slice(0, MOST_REASONS).map(asWarning);
    return { ...none, warnings: [unusable(checkpoint.path, error), ...reasons] };
  }
}

/** Whether a checkpoint has a config, readable or not. */
async function hasConfig(checkpoint: Checkpoint): Promise<boolean> {
  try {
    return (await findConfig(checkpoint, undefined)) !== undefined;
  } catch (error) {
    if (error instanceof UserError) return true;
    throw error;
  }
}

const idleNoConfig = ({ path: file }: Checkpoint): Problem => ({
  severity: 'warning',
  file,
  message: `${setting('noConfig')} is not used: no config is in the checkpoint or its folder`,
});

const familyOfNothing = ({ path: file }: Checkpoint) =>
  usageError(
    `${setting('family')} requires a config, and none is in ${file} or its folder`,
    `name the config with ${setting('config', 'FILE')}, or leave ${setting('family')} out`,
  );

/** Maximum number of reasons: a file of another program breaks many rules, and these are enough to recognise it. */
const MOST_REASONS = 3;

/** An unreadable config, or one of an unknown family. */
const unusable = (file: string, { message }: UserError): Problem => ({
  severity: 'warning',
  file,
  message: `${message}; the checkpoint is converted by its names alone`,
  suggestion: `name a config that describes it, with ${setting('config', 'FILE')}`,
});

const asWarning = (problem: Problem): Problem => ({ ...problem, severity: 'warning' });

/** A checkpoint that does not match its config. */
class Unlike extends UserError {}

/** Maximum number of reported kinds of faults; more indicate another model. */
const MOST_SHOWN = 20;

function unlike(file: string, config: string, { faults, suggestions }: Reconciliation): UserError {
  const shown = faults.slice(0, MOST_SHOWN).map(
    (fault): Problem => ({
      severity: 'error',
      file,
      path: fault.pattern,
      message: faultText(fault),
    }),
  );
  const hint = suggestions[0] ? `run ${commandText('verify')} for likely causes` : undefined;
  return new Unlike('refused-file', `${file} does not match ${config}`, {
    problems: shown,
    suggestion: `${hint ? `${hint}, ` : ''}name the right config with ${setting('config', 'FILE')}, or convert by names alone with ${setting('noConfig')}`,
  });
}

/** A value of a config before and after; null where it is absent. */
export interface ConfigChange {
  readonly path: string;
  readonly from: unknown;
  readonly to: unknown;
}

export interface WrittenConfig {
  readonly value: Record<string, unknown>;
  readonly text: string;
  readonly format: ConfigFormat;
}

/** A document with overrides, in its own format, where that can represent it. */
async function writtenWith(
  document: ConfigDocument,
  sets: readonly string[],
  readAs?: string,
): Promise<WrittenConfig> {
  const { written, meant } = await overridden(await asOurDocument(document, readAs), sets);
  const kept = isHuggingFace(document)
    ? await changedHuggingFace(document, meant, readAs)
    : undefined;
  if (kept) return { ...kept, format: 'json' };
  const { value } = written;
  return { value, text: documentText(value), format: 'yaml' };
}

interface ModelConfigChange extends ModelChange {
  readonly dtype?: EncodableDtype | undefined;
}

/** The tensor type, in a config that includes it. */
function typeSettings(document: unknown, dtype: EncodableDtype | undefined): Setting[] {
  const path = 'model.torch_dtype';
  const value = dtype && TORCH_TYPES[dtype]?.name;
  const isSaid = typeof valueAt(document, splitDotted(path)) === 'string';
  return isSaid && value ? [{ path, value }] : [];
}

/** A config after a conversion. */
export interface TargetConfig {
  readonly model: LanguageModel;
  /** Config to write: in the format of Hugging Face if the previous one is. */
  readonly written: WrittenConfig;
  /** Tensors that other programs store in addition to the model. */
  readonly ignored: readonly Ignored[];
  /** Differences from the previous config. */
  readonly changes: readonly ConfigChange[];
  /** Whether it was inside the checkpoint file. */
  readonly isInside: boolean;
  /** The changed settings of the config. */
  readonly settings: readonly Setting[];
}

/**
 * The config of the source with the changes of a conversion and the user's settings.
 * @throws UserError when the result is not a valid config.
 */
export async function changedConfig(
  source: SourceConfig,
  checkpoint: Checkpoint,
  change: ModelConfigChange,
  set: readonly string[],
): Promise<TargetConfig> {
  const wanted = [
    ...(source.family.settingsFor?.(change) ?? []),
    ...typeSettings(source.document, change.dtype),
  ];
  const settings = wanted.filter(
    ({ path, value }) => valueAt(source.document, splitDotted(path)) !== value,
  );
  const overrides = [...settings.map(({ path, value }) => `${path}=${value}`), ...set];
  const target = adjustedToCheckpoint(
    await modelOf(source.written, { set: overrides, family: source.readAs }),
    checkpoint,
  );
  const { family, model, document } = target;
  const written = await writtenWith(source.written, overrides, source.readAs);
  return {
    model,
    ignored: family.ignored?.(document) ?? [],
    written,
    isInside: source.origin === 'inside',
    settings,
    // The keys of a config.json are reported as the user finds them there: `dtype` or `torch_dtype`.
    changes:
      written.format === 'json'
        ? configChanges(source.written.value, written.value)
        : configChanges(source.document, document),
  };
}

/** Values that differ between two documents, by their paths; a list is one value. */
function configChanges(from: unknown, to: unknown, path: readonly string[] = []): ConfigChange[] {
  if (isRecord(from) && isRecord(to)) {
    const keys = new Set([...Object.keys(from), ...Object.keys(to)]);
    return [...keys].flatMap((key) =>
      configChanges(valueAt(from, [key]), valueAt(to, [key]), [...path, key]),
    );
  }
  if (isDeepStrictEqual(from, to)) return [];
  return [{ path: formatPath(path), from: from ?? null, to: to ?? null }];
}

/** The config of the target. @throws UserError when it is not valid. */
export async function targetConfig(
  file: string,
  source: SourceConfig | undefined,
  checkpoint: Checkpoint,
  set: readonly string[],
): Promise<TargetConfig> {
  const read = await readConfig(file);
  const target = adjustedToCheckpoint(await modelOf(read, { set }), checkpoint);
  const [from, to] = [source?.document, target.document].map((each) => valueAt(each, ['model']));
  return {
    model: target.model,
    ignored: target.family.ignored?.(target.document) ?? [],
    written: await writtenWith(read, set),
    isInside: false,
    settings: [],
    changes: configChanges(from ?? {}, to, ['model']),
  };
}
