/** Settings of a training: those of the model file, of flags, and defaults. */
import type { AdamWSettings } from '../../runtime/trainer.js';
import { isRecord } from '../../text/words.js';

export type SettingSource = 'flag' | 'file' | 'default';

export interface SourcedSetting {
  readonly value: number;
  readonly source: SettingSource;
}

/** Defaults of torch.optim.AdamW, and the usual limit of the gradients' norm. */
const DEFAULTS = {
  learning_rate: 1e-3,
  beta1: 0.9,
  beta2: 0.999,
  eps: 1e-8,
  weight_decay: 0.01,
  max_grad_norm: 1,
} as const;

type SettingKey = keyof typeof DEFAULTS;

/** Settings by the keys of a model file's `training:` section. */
export type OverfitSettings = Readonly<Record<SettingKey, SourcedSetting>>;

/** @param document Document parsed by the family's schema. */
export function settingsOf(document: unknown, learningRate: number | undefined): OverfitSettings {
  const section = isRecord(document) && isRecord(document.training) ? document.training : {};
  const settingOf = (key: SettingKey): SourcedSetting => {
    if (key === 'learning_rate' && learningRate !== undefined) {
      return { value: learningRate, source: 'flag' };
    }
    const value = section[key];
    return typeof value === 'number'
      ? { value, source: 'file' }
      : { value: DEFAULTS[key], source: 'default' };
  };
  return {
    learning_rate: settingOf('learning_rate'),
    beta1: settingOf('beta1'),
    beta2: settingOf('beta2'),
    eps: settingOf('eps'),
    weight_decay: settingOf('weight_decay'),
    max_grad_norm: settingOf('max_grad_norm'),
  };
}

export const optimizerOf = (settings: OverfitSettings): AdamWSettings => ({
  learningRate: settings.learning_rate.value,
  betas: [settings.beta1.value, settings.beta2.value],
  epsilon: settings.eps.value,
  weightDecay: settings.weight_decay.value,
});

/** As in trainers of Hugging Face, 0 turns clipping off. */
export const clippingOf = ({ max_grad_norm }: OverfitSettings): number | undefined =>
  max_grad_norm.value === 0 ? undefined : max_grad_norm.value;
