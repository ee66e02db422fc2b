/** A checkpoint held against a config, and what is wrong with it in the words of `verify`. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { Progress } from '../cli/progress.js';
import { progress } from '../cli/progress.js';
import type { Problem, Severity } from '../errors.js';
import { UserError } from '../errors.js';
import type { FaultGroup } from '../reconcile/notes.js';
import type { Reconciliation } from '../reconcile/reconcile.js';
import { reconcile } from '../reconcile/reconcile.js';
import { shortened } from '../report/inspect/inspect-text.js';
import { adviceText, differenceText, faultCountText, faultText } from '../report/verify.js';
import { asStored, descriptionOf, differencesInside } from './checkpoint-config.js';
import type { ModelFile } from './model-file.js';

/** Comparing takes its time when large tables turn out to be the same. */
export async function compared(
  loaded: ModelFile,
  checkpoint: Checkpoint,
  flags: { readonly quiet: boolean },
): Promise<Reconciliation> {
  let shown: Progress | undefined;
  try {
    return await reconcile(descriptionOf(loaded), checkpoint, (totalBytes) => {
      shown = progress(flags, 'comparing', totalBytes);
      return shown.add;
    });
  } finally {
    shown?.end();
  }
}

/** The first `most` faults as problems of the file, one for each group. */
export const faultProblems = (
  file: string,
  faults: readonly FaultGroup[],
  severity: Severity,
  most: number,
): Problem[] =>
  faults.slice(0, most).map((fault) => {
    const message = faultText(fault) + (fault.hint === null ? '' : ` (${fault.hint})`);
    return { severity, file, path: shortened(fault.pattern), message };
  });

/** More faults than this are only counted: they are of another model. */
const MOST_TOLD = 40;

/** @throws UserError that tells the faults and what would explain them, when there are faults. */
function refuseFaults(
  { path: file }: Checkpoint,
  config: string,
  { faults, suggestions }: Reconciliation,
): void {
  if (faults.length === 0) return;
  const more = faults.length > MOST_TOLD ? `, of which ${MOST_TOLD} are told here` : '';
  throw new UserError(
    'usage',
    `${file} is not as ${config} describes: ${faultCountText(faults)}${more}`,
    {
      problems: faultProblems(file, faults, 'error', MOST_TOLD),
      suggestion:
        suggestions.map(adviceText).join(' ') ||
        'name the config that it was made with; minimind verify compares the two',
    },
  );
}

/**
 * A described model as the checkpoint that its weights are from stores it.
 * @throws UserError when the two do not fit.
 */
export async function heldAgainst(
  described: ModelFile,
  checkpoint: Checkpoint,
  flags: { readonly quiet: boolean },
): Promise<{ readonly loaded: ModelFile; readonly warnings: readonly Problem[] }> {
  const loaded = asStored(described, checkpoint);
  refuseFaults(checkpoint, loaded.file, await compared(loaded, checkpoint, flags));
  return { loaded, warnings: await differenceWarnings(loaded, checkpoint) };
}

/** Warnings of a config inside the checkpoint that says otherwise, where tensors do not show it. */
async function differenceWarnings(loaded: ModelFile, checkpoint: Checkpoint): Promise<Problem[]> {
  const differences = await differencesInside(loaded, checkpoint);
  return differences.map((each) => ({
    severity: 'warning',
    file: checkpoint.path,
    message: differenceText(each),
  }));
}
