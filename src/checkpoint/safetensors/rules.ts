/** What a safetensors file must keep to. */
export const SAFETENSORS_RULES = {} as const;
