/** Sliders and switches of the sizes of a model. */
import type { DescribedModel } from '../../answers.js';
import { type Dial, dialsOf } from '../../dials.js';
import type { ExploredModel } from '../../explorer-state.js';
import { type Update, withValue, writtenValues } from '../model-edits.js';
import { Slider } from './slider.js';

interface Properties {
  readonly described: DescribedModel | undefined;
  readonly model: ExploredModel;
  readonly update: Update;
}

export function DialsPanel({ described, model, update }: Properties) {
  const isReadable = writtenValues(model.text, 'model') !== undefined;
  const dials = described ? dialsOf(described) : [];
  return (
    <section class="panel" aria-labelledby="dials">
      <h2 id="dials">Shape</h2>
      <fieldset disabled={!isReadable}>
        <legend class="hidden">Sizes of the model</legend>
        {dials.map((dial) => (
          <DialInput
            key={dial.key}
            dial={dial}
            set={(value) =>
              update((state) => withValue(state, 'model', dial.key, value), `model.${dial.key}`)
            }
          />
        ))}
      </fieldset>
      {dials.length === 0 && <p class="note">The sizes appear when the config is valid.</p>}
    </section>
  );
}

function DialInput({ dial, set }: { dial: Dial; set: (value: number | boolean) => void }) {
  const { label, key, value, stops } = dial;
  if (stops !== undefined) {
    return (
      <Slider
        label={label}
        hint={key}
        value={Number(value)}
        stops={stops}
        set={(next) => next !== undefined && set(next)}
      />
    );
  }
  return (
    <label class="switch" title={key}>
      <input
        type="checkbox"
        checked={value === true}
        onChange={({ currentTarget }) => set(currentTarget.checked)}
      />
      {label}
    </label>
  );
}
