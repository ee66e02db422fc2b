/** Changes of a model's text by controls. */
import { isRecord } from '../../base/values.js';
import { parseDocument } from '../../config/document.js';
import { editedYaml } from '../../config/syntax/yaml-edits.js';
import type { ExplorerState } from '../explorer-state.js';
import { editedModel, withText } from '../explorer-state.js';

export type Update = (next: (state: ExplorerState) => ExplorerState, change?: string) => void;

/** The state with a value of a section, or the default for undefined. A text that cannot be edited stays. */
export function withValue(
  state: ExplorerState,
  section: string,
  key: string,
  value: unknown,
): ExplorerState {
  const { text } = editedModel(state);
  const path = isFlat(text) ? [key] : [section, key];
  return withText(state, editedYaml(text, { path, value }) ?? text);
}

/** Settings of a section as they are written; undefined for a text that cannot be read. */
export function writtenValues(
  text: string,
  section: string,
): Readonly<Record<string, unknown>> | undefined {
  try {
    const { value } = parseDocument(text, '');
    const found = isRecord(value.model) ? value[section] : section === 'model' ? value : undefined;
    return isRecord(found) ? found : {};
  } catch {
    return undefined;
  }
}

/** Whether the settings are at the top, as in a `config.json`. */
function isFlat(text: string): boolean {
  try {
    return !isRecord(parseDocument(text, '').value.model);
  } catch {
    return false;
  }
}
