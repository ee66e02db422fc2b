/** What a folder of several files must keep to. */
export const SHARD_RULES = {} as const;
