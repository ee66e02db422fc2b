/** What the names of tensors must keep to, once wrappers' prefixes are taken off. */
export const NAME_RULES = {
  'names-collide': 'Names stay different when the prefixes of wrappers are taken off.',
  'names-keys': 'No integer key of a state dict reads like the name of a tensor beside it.',
} as const;
