import { checkpointOf, tensorOf } from '../../checkpoint/stored-tensors.js';

/** Checkpoint with these values as the tables of its layers. */
export const layersOf = (
  shape: readonly [number, number],
  ...tables: readonly (readonly number[])[]
) =>
  checkpointOf(
    new Map(
      tables.map((values, layer) => [
        `layers.${layer}.srte.freqs`,
        tensorOf(values, [1, ...shape]),
      ]),
    ),
  );
