/** Ministral 8B: Mistral with windows in some layers. */
import { defineDecoder } from '../transformer/define-decoder.js';
import { windowAt } from '../transformer/settings.js';
import { mistralDocument } from './mistral.js';

export const ministral = defineDecoder({
  title: 'Ministral',
  schema: mistralDocument('ministral'),
  attention: ({ config, index }) => ({ window: windowAt(config, index, true) }),
});
