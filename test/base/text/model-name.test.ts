import { expect, test } from 'vitest';
import { modelName } from '../../../src/base/text/words.js';

test.each([
  ['runs/Qwen3-8B/config.json', 'Qwen3-8B'],
  ['Qwen3-8B.gguf: metadata', 'Qwen3-8B'],
  ['runs/step-100.pt: config', 'step-100'],
  ['model.gguf: metadata', 'model'],
  // A colon in the name of a folder is no place.
  ['a: b/my.yaml', 'my'],
  ['qwen3: metadata', 'qwen3: metadata'],
])('the model in %s is %s', (file, name) => expect(modelName(file)).toBe(name));
