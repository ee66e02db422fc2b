import type { Srte } from '../../architecture/layer.js';
import type { Tensor2D, Tensor3D } from './library.js';
import type { Run } from './run.js';

/** The rows of the positions of this run, [1, T, H]; once for all blocks that share it. */
export function srte(run: Run, layer: Srte): Tensor3D {
  return run.once(layer, () => rowsOf(run, layer));
}

function rowsOf(run: Run, layer: Srte): Tensor3D {
  const { tf, weights, start, tokens } = run;
  switch (layer.kind) {
    case 'srteTable': {
      const table = weights.tensor(layer.table) as Tensor3D;
      return tf.slice(table, [0, start, 0], [1, tokens, -1]);
    }
    case 'srteLowRank': {
      const table = weights.tensor(layer.lowRank) as Tensor3D;
      return run.apply(layer.projection, tf.slice(table, [0, start, 0], [1, tokens, -1]));
    }
    case 'srteSincos': {
      const positions: Tensor2D = tf.reshape(tf.range(start, start + tokens), [tokens, 1]);
      const angles: Tensor2D = tf.mul(positions, weights.tensor(layer.inverseFrequencies));
      const pairs = tf.stack([tf.sin(angles), tf.cos(angles)], 2); // (T, H / 2, 2)
      return tf.reshape(pairs, [1, tokens, 2 * layer.inverseFrequencies.elements]);
    }
  }
}
