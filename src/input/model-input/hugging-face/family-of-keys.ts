/** The family of a config that does not name it, by the keys of its model. */

import type { ProblemText, UserError } from '../../../base/errors.js';
import { commandText, setting } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import { joined } from '../../../base/text/words.js';
import { isRecord, sumOf } from '../../../base/values.js';
import { checkDocument } from '../../../config/check-document.js';
import type { ConfigDocument } from '../../../config/document.js';
import type { LocatedFinding } from '../../../config/document-problems.js';
import { invalidConfig } from '../../../config/document-problems.js';
import { synonymAmong } from '../../../config/nearest.js';
import type { FamilyName } from '../../../model/architecture/families.js';
import { DEFAULT_FAMILY, FAMILY_NAMES, loadFamily } from '../../../model/architecture/families.js';
import type { Family } from '../../../model/architecture/family.js';
import { countedTensors } from '../../../model/architecture/walk.js';
import { asOfFamily, modelKeys, readsKey, settingOf, withSettingNames } from './setting-names.js';

/** Path of the family in a document. */
const FAMILY_PATH = ['model', 'family'] as const;

/** Families with `settingNames`: the only ones that can read keys of the default family. Loading all takes 0.2 s. */
export const RENAMING = ['minimind', 'minigpt'] as const satisfies readonly FamilyName[];

/** Keys that only the default family reads, here so that the others need not be loaded. */
export const OWN_KEYS: ReadonlySet<string> = new Set([
  ...['window_size', 'global_heads', 'gate_rank', 'drop_branch_prob', 'attention_type'],
  ...['srte_encoding', 'srte_share_across_layers', 'srte_factorized_rank', 'use_alignment'],
  ...['load_balance_coeff', 'entropy_reg_coeff'],
]);

/** Sizes without which a file describes no model of its own. */
const SIZES = ['hidden_size', 'num_hidden_layers'] as const;

/** A value that only one family's models have: MiniMind's tokenizer has 6,400 tokens. */
const SIGNATURE = { family: 'minimind', key: 'vocab_size', value: 6400 } as const;

/** Families in a refusal; more are counted. */
const MOST_NAMED = 4;

/** The family of a document, and messages about the choice. */
export interface DecidedFamily {
  readonly family: Family;
  readonly found?: LocatedFinding;
}

/**
 * The family that reads all keys of the document's model. Keys that the default family reads belong to it.
 * @throws UserError where several families read them.
 */
export async function familyOfKeys(document: ConfigDocument): Promise<DecidedFamily> {
  const standard = await loadFamily(DEFAULT_FAMILY);
  const { model } = document.value;
  const keys = isRecord(model) ? Object.keys(model).filter((key) => model[key] !== undefined) : [];
  if (keys.some((key) => OWN_KEYS.has(key))) return { family: standard };
  const isStandard = keys.every((key) => modelKeys(standard).has(key));
  if (isStandard && !describesWhole(keys)) return { family: standard };
  if (isStandard) {
    const renaming = await Promise.all(RENAMING.map(loadFamily));
    const alike = renaming.filter((family) => keys.every((key) => readsLoosely(family, key)));
    const valid = [standard, ...alike].filter((family) => isValid(document, family));
    if (valid.length > 1) throw ambiguous(document, valid);
    return { family: standard };
  }
  const others = await Promise.all(
    FAMILY_NAMES.filter((name) => name !== DEFAULT_FAMILY).map(loadFamily),
  );
  const unknown = (family: Family) => keys.filter((key) => !readsKey(family, key)).length;
  const fewest = Math.min(...others.map(unknown));
  if (fewest >= keys.filter((key) => !modelKeys(standard).has(key)).length) {
    return { family: standard };
  }
  const closest = others.filter((family) => unknown(family) === fewest);
  return decided(document, { keys, standard, others }, closest);
}

/** The keys of a model, the default family and the others. */
interface Choices {
  readonly keys: readonly string[];
  readonly standard: Family;
  readonly others: readonly Family[];
}

/** @param closest Families with the fewest unknown keys. */
function decided(
  document: ConfigDocument,
  { keys, standard, others }: Choices,
  closest: readonly Family[],
): DecidedFamily {
  const missing = missingSizes(keys);
  const [first, ...more] = closest;
  if (missing.length > 0 && more.length > 0)
    throw incomplete(document, closest, { missing, keys, standard });
  const marked = others.filter(
    (family) => hasSignature(document, family) && keys.every((key) => readsLoosely(family, key)),
  );
  const valid = [...new Set([...marked, ...closest])].filter((family) => isValid(document, family));
  const recognised = marked.find((family) => valid.includes(family) && closest.includes(family));
  if (recognised) return { family: recognised, found: choice(document, recognised, REASON) };
  if (valid.length > 1) throw ambiguous(document, valid);
  const family = valid[0] ?? first;
  if (family === undefined) throw new Error('no families');
  return { family, found: choice(document, family, reasonFor(family, keys)) };
}

const REASON = `${SIGNATURE.key} ${SIGNATURE.value} is that of its tokenizer`;

const readsLoosely = (family: Family, key: string) => settingOf(family, key) !== undefined;

const hasSignature = ({ value }: ConfigDocument, { name }: Family) =>
  name === SIGNATURE.family &&
  isRecord(value.model) &&
  value.model[SIGNATURE.key] === SIGNATURE.value;

const asRead = (document: ConfigDocument, family: Family) =>
  withSettingNames(asOfFamily(document, family), family);

const isValid = (document: ConfigDocument, family: Family): boolean =>
  checkDocument(asRead(document, family), family).errors === 0;

/** Whether the keys give the width, the depth and the heads of a model. */
const describesWhole = (keys: readonly string[]) =>
  [...SIZES, 'num_attention_heads'].every((size) => hasSize(size, keys));

const hasSize = (size: string, keys: readonly string[]) =>
  keys.includes(size) || synonymAmong(size, keys) !== undefined;

/** Sizes that no key gives, under any name. */
const missingSizes = (keys: readonly string[]) => SIZES.filter((size) => !hasSize(size, keys));

function reasonFor(family: Family, keys: readonly string[]): string {
  const own = keys.filter((key) => !modelKeys(family).has(key) && readsKey(family, key));
  const shown = own.length > 0 ? own : keys.filter((key) => modelKeys(family).has(key));
  return `its keys are those of ${family.name} (${shown.slice(0, 3).join(', ')}${shown.length > 3 ? ', …' : ''})`;
}

function choice(document: ConfigDocument, { name }: Family, reason: string): LocatedFinding {
  return {
    severity: 'warning',
    place: document.place(FAMILY_PATH, 'key'),
    path: FAMILY_PATH,
    finding: {
      message: `no family: read as ${name}, because ${reason}`,
      suggestion: `write family: ${name} beside these keys, or ${setting('family', name)}`,
    },
  };
}

// ── Refusals ─────────────────────────────────────────────────────────────────────────────────────

/** Names of families, as `--family minimind (25,829,888 parameters)`. */
function namedWith(families: readonly Family[], textOf: (family: Family) => string): string {
  const rest = families.length - MOST_NAMED;
  const named = families.slice(0, MOST_NAMED).map(textOf);
  return `${named.join(' or ')}${rest > 0 ? `; ${rest} more families read them too, see ${commandText('list')} ${setting('details')}` : ''}`;
}

function ambiguous(document: ConfigDocument, families: readonly Family[]): UserError {
  return familyRefusal(document, {
    message: `no family, and ${families.length} families read its keys`,
    suggestion: `write ${namedWith(families, (family) => `${setting('family', family.name)}${familySize(document, family)}`)}; or family: NAME beside its keys`,
  });
}

function incomplete(
  document: ConfigDocument,
  families: readonly Family[],
  { missing, keys, standard }: Gaps,
): UserError {
  const known = modelKeys(standard);
  const renamed = keys.filter((key) => !known.has(key));
  const own = renamed.map((key) => synonymAmong(key, [...known]));
  const isRenamed = own.every((key) => key !== undefined);
  return familyRefusal(document, {
    message: `no family and no ${missing.join(', no ')}: several families read its keys`,
    suggestion:
      `add ${joined([...missing])}, and write ${namedWith(families, ({ name }) => setting('family', name))}` +
      `${isRenamed ? `; a ${standard.name} has ${joined(own)} in place of ${joined(renamed)}` : ''}`,
  });
}

interface Gaps {
  readonly missing: readonly string[];
  readonly keys: readonly string[];
  readonly standard: Family;
}

/** Parameters of the model in a family. */
function familySize(document: ConfigDocument, family: Family): string {
  const { value } = checkDocument(asRead(document, family), family);
  if (value === undefined) return '';
  try {
    const owned = countedTensors(family.build(value)).filter(
      ({ tensor }) => tensor.role === 'parameter',
    );
    return ` (${formatInteger(sumOf(owned, ({ tensor, count }) => count * tensor.elements))} parameters)`;
  } catch {
    return '';
  }
}

function familyRefusal(document: ConfigDocument, text: ProblemText): UserError {
  const place = document.locate(['model'], 'key');
  return invalidConfig(
    document.file,
    [{ severity: 'error', ...place, path: FAMILY_PATH.join('.'), ...text }],
    1,
  );
}
