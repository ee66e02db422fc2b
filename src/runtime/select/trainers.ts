/** Which backend of TensorFlow.js trains. */
import type { BackendName } from '../tfjs/backends.js';
import type { Trainer } from '../trainer.js';
import type { PassedOver } from './devices.js';
import { chooseProducts } from './matmul-backends.js';

/**
 * A trainer on the fastest backend of TensorFlow.js whose products are right.
 * @throws UserError when there is none.
 */
export async function chooseTrainer(
  threads: number,
): Promise<{ readonly trainer: Trainer; readonly passedOver: readonly PassedOver[] }> {
  const { backend, products, passedOver } = await chooseProducts({ engine: 'tfjs', threads });
  await products.close();
  const { openTrainer } = await import('../tfjs/training.js');
  return { trainer: await openTrainer(threads, backend as BackendName), passedOver };
}
