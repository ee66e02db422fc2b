/** What the tensors of a PyTorch file, and the dict that holds them, must keep to. */
export const STATE_DICT_RULES = {} as const;
