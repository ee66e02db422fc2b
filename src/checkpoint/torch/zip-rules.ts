/** What the zip archive of a PyTorch file must keep to. */
export const ZIP_RULES = {} as const;
