/** Published models by their configs, and what is published of them. */
import { loadModelFile } from '../../src/model-input/model-file.js';
import { inPackage, readJson } from '../fixtures.js';

/** Of the numbers a model has those that somebody has published. */
export interface PublishedModel {
  readonly model: string;
  readonly total: number;
  readonly active_incl_embeddings?: number;
  readonly active_excl_input_embedding?: number;
  readonly non_embedding?: number;
  /** How many there are, of a mixture. */
  readonly experts?: number;
}

export const publishedModels = () => readJson<PublishedModel[]>('fixtures/published-counts.json');

const read = new Map<string, ReturnType<typeof loadModelFile>>();

/** Read once: descriptions never change. */
export function publishedConfig(name: string): ReturnType<typeof loadModelFile> {
  const model =
    read.get(name) ?? loadModelFile(inPackage('fixtures/hf-configs', name, 'config.json'));
  read.set(name, model);
  return model;
}
