/** Name of the page, the model, and what is done with the whole state. */
import { useState } from 'preact/hooks';
import { toJson } from '../../../base/text/escape.js';
import { groupBy } from '../../../base/values.js';
import { bugAnswer, fitAnswer } from '../../answers.js';
import type { ExploredModel } from '../../explorer-state.js';
import { editedModel, fileName, withModel, withOnly, withSecond } from '../../explorer-state.js';
import { linkFragment } from '../../link.js';

import { copyText, saveFile } from '../browser.js';
import type { ExplorerControl } from '../use-explorer.js';

interface Properties {
  readonly control: ExplorerControl;
  readonly presets: readonly ExploredModel[];
}

export function Toolbar({ control, presets }: Properties) {
  const { state, answers, canUndo, canRedo, undo, redo, update } = control;
  const [said, setSaid] = useState('');
  const model = editedModel(state);
  const current = answers[state.edited];
  const profile = current?.now?.profile;
  const fit = current?.isFitOld ? undefined : current?.fit;
  const base = fileName(model.name).replace(/\.\w+$/, '');
  const isDouble = state.models.length === 2;
  const copyLink = async () => {
    const url = new URL(location.href);
    url.hash = await linkFragment(state);
    setSaid((await copyText(url.href)) ? 'Link copied' : 'The link is in the address bar');
  };
  // The whole answer takes longer than what the page shows of it.
  const saveFit = async () => {
    const answer = await fitAnswer(model, state.setting).catch(bugAnswer);
    if (answer) saveFile(`${base}.fit.json`, toJson(answer));
  };
  return (
    <header class="toolbar">
      <h1>
        minimind <span>explorer</span>
      </h1>
      <PresetPicker
        presets={presets}
        model={model}
        choose={(preset) => update((kept) => withModel(kept, preset))}
      />
      <div class="group">
        <button type="button" disabled={!canUndo} onClick={undo}>
          Undo
        </button>
        <button type="button" disabled={!canRedo} onClick={redo}>
          Redo
        </button>
      </div>
      <div class="group">
        <button
          type="button"
          aria-pressed={isDouble}
          onClick={() =>
            update((kept) => (isDouble ? withOnly(kept, kept.edited) : withSecond(kept)))
          }
        >
          Compare
        </button>
        <button type="button" onClick={copyLink}>
          Copy link
        </button>
        <details class="menu">
          <summary>Download</summary>
          <div>
            <button type="button" onClick={() => saveFile(fileName(model.name), model.text)}>
              Config ({fileName(model.name).split('.').at(-1)})
            </button>
            <button
              type="button"
              disabled={profile === undefined}
              onClick={() => profile && saveFile(`${base}.profile.json`, toJson(profile))}
            >
              Profile (JSON)
            </button>
            <button type="button" disabled={fit === undefined} onClick={saveFit}>
              Fit (JSON)
            </button>
          </div>
        </details>
      </div>
      <p class="said" role="status">
        {said}
      </p>
    </header>
  );
}

interface PickerProperties {
  readonly presets: readonly ExploredModel[];
  readonly model: ExploredModel;
  readonly choose: (preset: ExploredModel) => void;
}

/** A list of the presets by family. The present model is shown although it is not one of them. */
function PresetPicker({ presets, model, choose }: PickerProperties) {
  const families = groupBy(presets, ({ name }) => name.split('/')[0] ?? '');
  const isPreset = presets.some(({ name }) => name === model.name);
  return (
    <label class="picker">
      <span class="hidden">Model</span>
      <select
        value={model.name}
        onChange={({ currentTarget }) => {
          const preset = presets.find(({ name }) => name === currentTarget.value);
          if (preset) choose(preset);
        }}
      >
        {!isPreset && <option value={model.name}>{model.name}</option>}
        {[...families].map(([family, models]) => (
          <optgroup key={family} label={family}>
            {models.map(({ name }) => (
              <option key={name} value={name}>
                {name.slice(family.length + 1)}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}
