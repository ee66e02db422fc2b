/** Keys of records by which their kind is found. */
export const CHAT_KEYS = ['conversations', 'messages'] as const;
export const ID_KEYS = ['input_ids', 'ids', 'tokens'] as const;

/** All keys that records are read from. */
export const RECORD_KEYS: readonly string[] = [
  ...['text', ...CHAT_KEYS, 'tools', 'prompt', 'chosen', 'rejected'],
  ...ID_KEYS,
];
