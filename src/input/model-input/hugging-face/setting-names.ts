/** Other names of keys in a config, and the settings that they mean. */

import { isRecord } from '../../../base/values.js';
import type { ConfigDocument } from '../../../config/document.js';
import { withRenamedKey, withSetting } from '../../../config/document.js';
import { synonymAmong } from '../../../config/nearest.js';
import { keyPaths } from '../../../config/schema-structure.js';
import type { Family } from '../../../model/architecture/family.js';
import { memoized } from '../../../model/architecture/walk.js';

/** Keys of rotary settings whose `type` is the older name of `rope_type`. */
const ROTARY_KEYS = ['rope_scaling', 'rope_local_scaling'] as const;

/** The document as one of a family. */
export const asOfFamily = (document: ConfigDocument, { name }: Family): ConfigDocument =>
  withSetting(document, ['model', 'family'], name);

/** Keys of the `model` section of a family. */
export const modelKeys: (family: Family) => ReadonlySet<string> = memoized(
  ({ schema }) =>
    new Set(
      [...keyPaths(schema)].flatMap(([section, key, ...rest]) =>
        section === 'model' && key !== undefined && rest.length === 0 ? [String(key)] : [],
      ),
    ),
);

/** The setting that a project calls by another name; undefined for a key of the family, or an unknown one. */
const projectSetting = ({ settingNames = {} }: Family, key: string): string | undefined =>
  Object.hasOwn(settingNames, key) ? settingNames[key] : undefined;

/** Whether a family has a key under a name of its own project. */
export const readsKey = (family: Family, key: string): boolean =>
  modelKeys(family).has(key) || projectSetting(family, key) !== undefined;

/**
 * The setting that a key means in a family. Families whose configs people write by hand also have the names of other
 * projects.
 */
export function settingOf(family: Family, key: string): string | undefined {
  const known = modelKeys(family);
  if (known.has(key)) return key;
  return projectSetting(family, key) ?? (family.settingNames && synonymAmong(key, [...known]));
}

/** An override with the current name of its key. */
export const inSettingNames =
  (family: Family) =>
  (text: string): string =>
    text.replace(/^(\s*(?:model\.)?)(\w+)(\.type)?(?=\s*=)/, (whole, section, key, type) => {
      if (type)
        return ROTARY_KEYS.some((each) => each === key) ? `${section}${key}.rope_type` : whole;
      const setting = settingOf(family, key);
      return setting === undefined ? whole : `${section}${setting}`;
    });

/** The document with the current names of its keys. */
export function withSettingNames(document: ConfigDocument, family: Family): ConfigDocument {
  const { model } = document.value;
  const keys = isRecord(model) ? Object.keys(model) : [];
  const current = keys.reduce((changed, key) => {
    const setting = settingOf(family, key);
    return setting === undefined || setting === key
      ? changed
      : withRenamedKey(changed, ['model', key], setting);
  }, document);
  return ROTARY_KEYS.reduce(
    (changed, key) => withRenamedKey(changed, ['model', key, 'type'], 'rope_type'),
    current,
  );
}
