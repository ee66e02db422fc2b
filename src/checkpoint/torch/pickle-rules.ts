/** What a pickle must keep to, so that it can be read as data. */
export const PICKLE_RULES = {} as const;
