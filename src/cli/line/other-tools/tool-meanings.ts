/** Meanings of the words of other tools, alone and together. Loaded only for a line with such a word. */
export * from '../../foreign/meanings.js';
export { unknownFlag } from '../unknown-flag.js';
export { areFields } from './json-fields.js';
export { refuseOtherPurpose } from './other-purpose.js';
export { quantizedValue } from './quantized-values.js';
export {
  draftLines,
  firstNumber,
  hubModelLines,
  inTokens,
  isOnlyModel,
  lastPart,
  linesOfPairs,
  perStep,
} from './special-meanings.js';
export { fitOfPlan, OF_ADAPTERS, OF_LORA, wholeLine } from './whole-lines.js';
