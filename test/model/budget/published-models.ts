/** Configs of published models, and their published numbers. */
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { inPackage, readJson } from '../../fixtures.js';

/** Published numbers of a model. */
export interface PublishedModel {
  readonly model: string;
  readonly total: number;
  readonly active_incl_embeddings?: number;
  readonly active_excl_input_embedding?: number;
  readonly non_embedding?: number;
  /** Number of experts of a mixture. */
  readonly experts?: number;
}

export const publishedModels = () => readJson<PublishedModel[]>('fixtures/published-counts.json');

const configs = new Map<string, ReturnType<typeof loadModelFile>>();

/** Config of a model, read once: descriptions never change. */
export function publishedConfig(name: string): ReturnType<typeof loadModelFile> {
  const model =
    configs.get(name) ?? loadModelFile(inPackage('fixtures/hf-configs', name, 'config.json'));
  configs.set(name, model);
  return model;
}
