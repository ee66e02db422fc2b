/** The memory of an encoder is one figure: in the table of hardware, in the detail of a machine, and in `profile`. */
import { describe, expect, it } from 'vitest';
import { fit as fitOf } from '../../../src/library/fit.js';
import { describeModel } from '../../../src/library/models/describe-model.js';
import { profile } from '../../../src/library/profile.js';

const BASE = { hidden_size: 768, num_hidden_layers: 12, num_attention_heads: 12 };
const T5 = {
  vocab_size: 32_128,
  d_model: 768,
  d_kv: 64,
  d_ff: 3072,
  num_layers: 12,
  num_heads: 12,
};

/** Published sizes. */
const ENCODERS = {
  bert: { model_type: 'bert', architectures: ['BertForMaskedLM'], vocab_size: 30_522, ...BASE },
  roberta: {
    ...{ model_type: 'roberta', architectures: ['RobertaModel'], vocab_size: 50_265 },
    ...{ ...BASE, max_position_embeddings: 514, type_vocab_size: 1 },
  },
  modernbert: { model_type: 'modernbert', architectures: ['ModernBertModel'], ...BASE },
  vit: { model_type: 'vit', architectures: ['ViTModel'], ...BASE },
  clip: {
    ...{ model_type: 'clip', architectures: ['CLIPModel'], projection_dim: 512 },
    ...{ text_config: {}, vision_config: {} },
  },
  t5: { model_type: 't5', architectures: ['T5EncoderModel'], ...T5 },
} as const;

const MACHINES = ['l4', 'h100-80gb', 'm4-max-128gb', 'dgx-h100'] as const;

const modelOf = (kind: keyof typeof ENCODERS) =>
  describeModel({ ...ENCODERS[kind] }, { file: 'config.json' });

const boundsOf = ({
  lower,
  expected,
  upper,
}: {
  lower: { value: unknown };
  expected: { value: unknown };
  upper: { value: unknown };
}) => [lower, expected, upper].map(({ value }) => Number(value));

describe.each(Object.keys(ENCODERS) as (keyof typeof ENCODERS)[])('memory of %s', (kind) => {
  it('is the same in the detail and in the table, at the edge of each memory', async () => {
    const model = await modelOf(kind);
    for (const gpu of MACHINES) {
      const { pass } = fitOf(model, { gpu, for: 'serving' });
      const most = pass?.largestBatch?.value ?? 0;
      expect(most, gpu).toBeGreaterThan(1);
      for (const batch of [Math.floor(most / 4), most, most + 1]) {
        const detail = fitOf(model, { gpu, for: 'serving', batch }).pass;
        const table = fitOf(model, { for: 'serving', dtype: 'bf16', batch });
        const cell = table.rows.find(({ name }) => name === gpu)?.cells[0];
        expect({ batch, verdict: cell?.verdict }, gpu).toEqual({ batch, verdict: detail?.verdict });
        // A pass is on one GPU: more of them do not divide it.
        expect(cell?.gpus === null, gpu).toBe(detail?.verdict !== 'fits');
      }
    }
  });

  it('is the same in `profile` and on its GPU', async () => {
    const model = await modelOf(kind);
    const { onGpu, setting } = profile(model);
    const { batch, context } = setting.inference;
    const { pass } = fitOf(model, { gpu: 'h100-80gb', for: 'serving', batch, context });
    expect(onGpu && boundsOf(onGpu.serving)).toEqual(pass && boundsOf(pass.total));
  });
});
