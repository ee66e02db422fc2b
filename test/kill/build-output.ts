/** A program that only writes an output: KIND OUT [--resume]. */
import { Staging } from '../../src/base/files/staging.js';

const [kind, out = '', flag] = process.argv.slice(2);
const staging = await Staging.open(out, {
  kind: kind === 'file' ? 'file' : 'folder',
  force: true,
  resume: flag === '--resume',
  identity: 'the same',
});
const main = kind === 'file' ? staging.mainName : 'model-00002-of-00002.safetensors';
if (!staging.isInPlace) {
  for (const [index, name] of ['config.yaml', 'model-00001-of-00002.safetensors', main].entries()) {
    if (staging.isFinished(name)) continue;
    await staging.write(name, async (sink) => {
      for (let piece = 0; piece < 4; piece++) {
        await sink.write(Buffer.alloc(2 ** 18 + index, 16 * index + piece));
      }
    });
  }
}
await staging.commit();
