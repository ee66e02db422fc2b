/** Whether a model generates tokens, and what an encoder of it leaves uncounted. */
import { COMPONENTS, type LanguageModel } from '../architecture/layer.js';
import { memoized, walkCounted } from '../architecture/walk.js';
import { primitivesOf } from '../operations/lower.js';

/** `tokens`: a decoder; `after encoder`: a decoder with an encoder that runs once; `none`: an encoder, without a cache. */
export type Generation = 'tokens' | 'after encoder' | 'none';

/** Components that run once for an input. */
const TOWERS: readonly string[] = ['audioTower', 'visionTower'];

/** Whether a model generates tokens: one whose layers keep nothing for a next token does not. */
export const generationOf = memoized((model: LanguageModel): Generation => {
  const isBothWays = walkCounted(model).some(
    ({ layer }) =>
      layer.kind === 'described' &&
      layer.works.some((work) => work.work === 'attention' && work.isUncached),
  );
  if (!isBothWays && uncountedTower(model) === undefined) return 'tokens';
  const keeps = model.blocks
    .flatMap((block) => primitivesOf(block))
    .some(
      (each) =>
        (each.kind === 'scores' && each.keeps !== 'nothing') ||
        each.kind === 'scan' ||
        each.kind === 'convolution',
    );
  return keeps ? 'after encoder' : 'none';
});

/** Title of a tower in a described model whose FLOPs are not counted: `audio encoder`; undefined without one. */
export const uncountedTower = memoized(({ embeddingSteps }: LanguageModel): string | undefined => {
  const tower = embeddingSteps.find(
    (layer) => layer.kind === 'described' && TOWERS.includes(layer.component ?? ''),
  );
  return tower?.component && COMPONENTS[tower.component];
});
