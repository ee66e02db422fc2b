import { PICKLE_RULES } from './pickle/pickle-rules.js';
import { STATE_DICT_RULES } from './state-dict/state-dict-rules.js';
import { ZIP_RULES } from './zip/zip-rules.js';

/** What PyTorch's own files must keep to. */
export const TORCH_RULES = { ...ZIP_RULES, ...PICKLE_RULES, ...STATE_DICT_RULES } as const;
