/** Settings that are not in the config: hardware, and the purpose of the model. */

import { DTYPE_NAMES } from '../../../base/tensor/dtype.js';
import { WEIGHT_DTYPE_NAMES } from '../../../estimate/fit/serving/weight-types.js';
import { USUAL_GPU } from '../../../estimate/hardware/gpu.js';
import { GPUS } from '../../../estimate/hardware/gpus.js';
import { MACHINES } from '../../../estimate/hardware/machines.js';
import { withStop } from '../../dials.js';
import { type ExplorerSetting, withSetting } from '../../explorer-state.js';
import type { Update } from '../model-edits.js';
import { Slider } from './slider.js';

interface Properties {
  readonly setting: ExplorerSetting;
  /** Longest input of the model. */
  readonly positions: number | undefined;
  /** Tokens of a sequence without a setting. */
  readonly usualContext: number | undefined;
  readonly update: Update;
}

/** A key of the setting with a number. */
type NumberKey = 'context' | 'batch' | 'users' | 'gpus' | 'microBatch' | 'trainTokens';

const DESCRIPTIONS: Readonly<Record<NumberKey, string>> = {
  context: 'tokens of a sequence',
  batch: 'sequences at the same time',
  users: 'users at the same time; all that fit, if not given',
  gpus: 'number of GPUs; all of a machine, if not given',
  microBatch: 'sequences of a micro-batch; as in the file or 1, if not given',
  trainTokens: 'tokens of the whole training, for its time',
};

const POWERS = Array.from({ length: 11 }, (_, index) => 2 ** index);
const CONTEXTS = Array.from({ length: 14 }, (_, index) => 2 ** (index + 7));
const TOKENS = [1e8, 3e8, 1e9, 3e9, 1e10, 3e10, 1e11, 3e11, 1e12, 3e12, 1e13, 1.5e13, 3e13];

/** Types of weights, the most common first. */
const DTYPES = ['bf16', 'f16', 'f32', 'f8', 'int8', 'int4', 'mxfp4', 'nvfp4'];

export function SettingPanel({
  setting,
  positions = Number.POSITIVE_INFINITY,
  usualContext,
  update,
}: Properties) {
  const set = <Key extends keyof ExplorerSetting>(
    key: Key,
    value: ExplorerSetting[Key] | undefined,
  ) => update((state) => withSetting(state, key, value), `setting.${key}`);
  const slider = (
    key: NumberKey,
    label: string,
    stops: readonly number[],
    usual: number | 'all' | 'none' = 1,
  ) => (
    <Slider
      label={label}
      hint={DESCRIPTIONS[key]}
      value={setting[key]}
      stops={setting[key] === undefined ? stops : withStop(stops, setting[key])}
      usual={usual}
      set={(value) => set(key, value || undefined)}
    />
  );
  const isMachine = MACHINES.some(({ name }) => name === setting.gpu);
  const contexts = CONTEXTS.filter((context) => context <= positions);
  const others = WEIGHT_DTYPE_NAMES.filter((name) => !DTYPES.includes(name));
  return (
    <section class="panel" aria-labelledby="setting">
      <h2 id="setting">Use</h2>
      <Choice
        label="GPU"
        value={setting.gpu ?? USUAL_GPU}
        set={(value) => set('gpu', value === USUAL_GPU ? undefined : value)}
        groups={[
          ['GPUs', GPUS.map(({ name, title }) => [name, title])],
          ['Machines', MACHINES.map(({ name, title }) => [name, title])],
        ]}
      />
      {slider('gpus', 'Number of GPUs', POWERS, isMachine ? 'all' : 1)}
      {slider(
        'context',
        'Context',
        Number.isFinite(positions) ? withStop(contexts, positions) : contexts,
        usualContext,
      )}
      {slider('batch', 'Batch', POWERS)}
      {slider('users', 'Users', POWERS, 'all')}
      <Choice
        label="Weights"
        value={setting.dtype ?? ''}
        set={(value) => set('dtype', value || undefined)}
        groups={[
          ['', [['', 'as stored, or bf16']]],
          ['Types', DTYPES.map((name) => [name, name])],
          ['GGUF files', others.map((name) => [name, name])],
        ]}
      />
      <Choice
        label="KV cache"
        value={setting.cacheDtype ?? ''}
        set={(value) => set('cacheDtype', value || undefined)}
        groups={[['', [['', 'as the weights, 16 bits or more'], ...DTYPE_NAMES.map(same)]]]}
      />
      <h3>Training</h3>
      {slider('microBatch', 'Sequences per GPU', POWERS, 'none')}
      {slider('trainTokens', 'Tokens', TOKENS, 'none')}
    </section>
  );
}

const same = (name: string): Option => [name, name];

type Option = readonly [value: string, text: string];

interface ChoiceProperties {
  readonly label: string;
  readonly value: string;
  readonly groups: readonly (readonly [title: string, options: readonly Option[]])[];
  readonly set: (value: string) => void;
}

function Choice({ label, value, groups, set }: ChoiceProperties) {
  const options = (all: readonly Option[]) =>
    all.map(([name, text]) => (
      <option key={name} value={name}>
        {text}
      </option>
    ));
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={({ currentTarget }) => set(currentTarget.value)}>
        {groups.map(([title, all]) =>
          title === '' ? (
            options(all)
          ) : (
            <optgroup key={title} label={title}>
              {options(all)}
            </optgroup>
          ),
        )}
      </select>
    </label>
  );
}
