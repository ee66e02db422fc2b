/**
 * Encoders, encoder-decoders and towers: names, shapes and counts of tiny models as their classes in transformers build
 * them (fixtures/encoders/make.py). MINIMIND_ENCODER_CASES names another folder of such files.
 */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseDocument } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { stateDictOf, sumOfTensors } from '../../../src/model/architecture/walk.js';
import { inPackage } from '../../fixtures.js';

interface EncoderCase {
  readonly config: Readonly<Record<string, unknown>> & { readonly model_type: string };
  readonly parameters: number;
  readonly tensors: Readonly<Record<string, readonly number[]>>;
}

const FOLDER = process.env.MINIMIND_ENCODER_CASES ?? inPackage('fixtures', 'encoders');

const FILES = fs.readdirSync(FOLDER).filter((file) => file.endsWith('.json'));

const caseIn = (file: string) =>
  JSON.parse(fs.readFileSync(path.join(FOLDER, file), 'utf8')) as EncoderCase;

describe('encoders, encoder-decoders and towers', () => {
  test.each(FILES)('%s: names, shapes and counts are those of the class', async (file) => {
    const { config, parameters, tensors } = caseIn(file);
    const { model, warnings } = await modelOf(parseDocument(JSON.stringify(config), 'config.json'));
    const found = Object.fromEntries(
      stateDictOf(model).map(({ name, tensor }) => [name, tensor.shape]),
    );
    expect(found).toEqual(tensors);
    expect(sumOfTensors(model, ({ role, elements }) => (role === 'parameter' ? elements : 0))).toBe(
      parameters,
    );
    expect(warnings.filter(({ message }) => message.includes('unknown key'))).toEqual([]);
  });
});
