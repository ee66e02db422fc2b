import { afterAll, describe, expect, it } from 'vitest';
import type { Checkpoint } from '../../../src/checkpoint/checkpoint.js';
import { FAULT_KINDS, quantizedPart } from '../../../src/checkpoint/reconcile/faults.js';
import { reconcile, reconcileIndex } from '../../../src/checkpoint/reconcile/reconcile.js';
import type { StoredTensor } from '../../../src/checkpoint/stored-tensor.js';
import { checkpointOf } from '../stored-tensors.js';
import { describeModel, Workshop } from './support.js';

const workshop = new Workshop();
afterAll(() => workshop.close());

/** A checkpoint of `stored` with changed tensors. */
function changed(
  stored: Record<string, unknown>,
  change: (tensors: Map<string, StoredTensor>) => void = () => {},
): Checkpoint {
  const tensors = workshop.stateDict(describeModel(stored).model);
  change(tensors);
  return checkpointOf(tensors);
}

/** Result for a checkpoint of the small model with one kind of fault. */
const damaged = (change: (tensors: Map<string, StoredTensor>) => void) =>
  reconcile(describeModel(), changed({}, change));

const every = (leaf: string) => [0, 1, 2, 3].map((layer) => `layers.${layer}.${leaf}`);

/** Faults as short texts. */
const faultTexts = ({ faults }: Awaited<ReturnType<typeof reconcile>>) =>
  faults.map(({ kind, pattern, names }) => `${kind} ${pattern} ×${names.length}`);

it.each([
  ['layers.0.q.scales', 'scales of GPTQ, AWQ or MLX'],
  ['layers.0.q.biases', 'zero points of MLX'],
  ['layers.0.q.q_weight', 'packed weights of EXL2'],
  ['layers.0.q.weight.absmax', 'scales of 4-bit weights (bitsandbytes)'],
  ['layers.0.experts.gate_up_proj_blocks', 'packed weights of MXFP4'],
  ['layers.0.q.weight', undefined],
  ['toString', undefined],
])('%s has a purpose in a quantized checkpoint: %s', (name, purpose) => {
  expect(quantizedPart(name)).toBe(purpose);
});

describe('a checkpoint that matches the description', () => {
  it.each([
    {},
    { srte_share_across_layers: true },
    { srte_share_across_layers: true, srte_factorized_rank: 3 },
    { srte_encoding: 'sincos' },
    { srte_encoding: 'sincos', srte_share_across_layers: true },
    { tie_word_embeddings: true },
    { use_alignment: false },
    { num_layers: 1 },
    { num_layers: 1, srte_share_across_layers: true },
  ])('with %j has no faults', async (config) => {
    const checkpoint = changed(config);
    const result = await reconcile(describeModel(config), checkpoint);
    expect(result).toEqual({ matches: true, prefix: '', faults: [], notes: [], suggestions: [] });
    expect(reconcileIndex(describeModel(config), checkpoint)).toEqual(result);
  });

  it('may have equal buffers', async () => {
    const config = { srte_encoding: 'sincos' };
    const checkpoint = changed(config, (tensors) => {
      for (const name of every('srte.inv_freq'))
        tensors.set(name, workshop.tensor([4], { seed: 1 }));
      const [first] = every('attention.rope.inv_freq');
      const table = tensors.get(first ?? '') as StoredTensor;
      for (const name of every('attention.rope.inv_freq')) tensors.set(name, table);
    });
    expect((await reconcile(describeModel(config), checkpoint)).faults).toEqual([]);
  });

  it('may have the prefixes of wrappers', async () => {
    const tensors = [...workshop.stateDict(describeModel().model)];
    const wrapped = new Map(tensors.map(([name, tensor]) => [`module.${name}`, tensor]));
    const result = await reconcile(describeModel(), checkpointOf(wrapped));
    expect(result).toMatchObject({ matches: true, prefix: 'module.' });
  });

  it('may be of any floating type', async () => {
    const result = await damaged((tensors) => {
      tensors.set('norm.weight', workshop.tensor([8], { dtype: 'BF16' }));
      tensors.set('norm.bias', workshop.tensor([8], { dtype: 'F8_E4M3' }));
    });
    expect(result.matches).toBe(true);
  });
});

describe('a fault is reported:', () => {
  const exercised = new Set<string>();
  const expectFaults = async (
    change: (tensors: Map<string, StoredTensor>) => void,
    ...expected: string[]
  ) => {
    const result = await damaged(change);
    for (const { kind } of result.faults) exercised.add(kind);
    expect(faultTexts(result)).toEqual(expected);
    expect(result.matches).toBe(expected.length === 0);
    return result;
  };

  it('missing tensors of many layers on one line', async () => {
    const { faults } = await expectFaults(
      (tensors) => {
        for (const name of every('mamba.D')) tensors.delete(name);
        tensors.delete('norm.bias');
      },
      'missing layers.{0–3}.mamba.D ×4',
      'missing norm.bias ×1',
    );
    expect(faults[0]).toEqual({
      kind: 'missing',
      pattern: 'layers.{0–3}.mamba.D',
      names: every('mamba.D'),
      expected: { shape: [16] },
      found: null,
      hint: null,
    });
  });

  it('missing tensors of layers that are not consecutive', () =>
    expectFaults((tensors) => {
      for (const layer of [0, 2, 3]) tensors.delete(`layers.${layer}.mamba.D`);
    }, 'missing layers.{0, 2–3}.mamba.D ×3'));

  it('wrong shapes that differ between layers', async () => {
    const { faults } = await expectFaults(
      (tensors) => {
        for (const name of every('mamba.in_proj.weight')) {
          tensors.set(name, workshop.tensor([8, 32]));
        }
        tensors.set('layers.2.mamba.in_proj.weight', workshop.tensor([32, 9]));
      },
      'misshapen layers.{0–1, 3}.mamba.in_proj.weight ×3',
      'misshapen layers.2.mamba.in_proj.weight ×1',
    );
    expect(faults[0]).toMatchObject({
      expected: { shape: [32, 8] },
      found: { dtype: 'F32', shape: [8, 32] },
      hint: 'transposed',
    });
    expect(faults[1]?.hint).toBe(null);
  });

  it('an extra tensor with the missing name that is similar', async () => {
    const { faults } = await expectFaults(
      (tensors) => {
        tensors.set('ema.decay', workshop.tensor([1]));
        tensors.set('lm_head.weigth', tensors.get('lm_head.weight') as StoredTensor);
        tensors.delete('lm_head.weight');
        tensors.set('layers.1.mamba.D.running_mean', workshop.tensor([16]));
      },
      'missing lm_head.weight ×1',
      'extra ema.decay ×1',
      'extra lm_head.weigth ×1',
      'extra layers.1.mamba.D.running_mean ×1',
    );
    expect(faults.map(({ hint }) => hint)).toEqual([
      null,
      null,
      'near lm_head.weight, which is missing',
      null,
    ]);
  });

  it('a wrong type', async () => {
    const { faults } = await expectFaults(
      (tensors) => tensors.set('norm.weight', workshop.tensor([8], { dtype: 'I64' })),
      'wrong-dtype norm.weight ×1',
    );
    expect(faults[0]).toMatchObject({
      expected: { dtype: 'float', shape: [8] },
      found: { dtype: 'I64', shape: [8] },
    });
  });

  const without = (layer: number) => (tensors: Map<string, StoredTensor>) => {
    for (const name of [...tensors.keys()]) {
      if (name.startsWith(`layers.${layer}.`)) tensors.delete(name);
    }
  };

  it('a gap in the layers', async () => {
    const { faults } = await expectFaults(without(1), 'layer-gap layers.1 ×35');
    expect(faults[0]).toMatchObject({ expected: { layers: 4 }, found: { layers: 3 } });
  });

  it('fewer and more layers', async () => {
    await expectFaults(without(3), 'missing-layers layers.3 ×35');
    const more = await reconcile(describeModel({ num_layers: 2 }), changed({}));
    for (const { kind } of more.faults) exercised.add(kind);
    expect(faultTexts(more)).toEqual(['extra-layers layers.{2–3} ×76']);
    expect(more.faults[0]).toMatchObject({ expected: { layers: 2 }, found: { layers: 4 } });
  });

  it('an invalid number of a layer', () =>
    expectFaults(
      (tensors) => tensors.set('layers.04.mamba.D', workshop.tensor([16])),
      'extra layers.04.mamba.D ×1',
    ));

  it('a tied head with separate values', async () => {
    const tied = describeModel({ tie_word_embeddings: true });
    const result = await reconcile(tied, changed({}));
    for (const { kind } of result.faults) exercised.add(kind);
    expect(faultTexts(result)).toEqual(['not-tied lm_head.weight ×1']);
    expect(result.faults[0]?.expected).toEqual({ shape: [17, 8], sameAs: 'embed_tokens.weight' });
  });

  it('a shared table that differs in each layer', async () => {
    const shared = describeModel({ srte_share_across_layers: true });
    const result = await reconcile(shared, changed({}));
    expect(faultTexts(result)).toEqual(['not-tied layers.{1–3}.srte.freqs ×3']);
  });

  it('a shared table that differs in one layer', async () => {
    const shared = describeModel({ srte_share_across_layers: true });
    const checkpoint = changed({ srte_share_across_layers: true }, (tensors) =>
      tensors.set('layers.2.srte.freqs', workshop.tensor([1, 12, 8])),
    );
    expect(faultTexts(await reconcile(shared, checkpoint))).toEqual([
      'not-tied layers.2.srte.freqs ×1',
    ]);
  });

  it('a shared table that differs where the first is misshapen', async () => {
    const shared = describeModel({ srte_share_across_layers: true });
    const checkpoint = changed({}, (tensors) =>
      tensors.set('layers.0.srte.freqs', workshop.tensor([1, 12, 9])),
    );
    expect(faultTexts(await reconcile(shared, checkpoint))).toEqual([
      'misshapen layers.0.srte.freqs ×1',
      'not-tied layers.{2–3}.srte.freqs ×2',
    ]);
  });

  it('a head that is the embedding, though the config has separate ones', async () => {
    const { faults } = await expectFaults((tensors) => {
      const embedding = workshop.tensor([17, 8], { seed: 1 });
      tensors.set('embed_tokens.weight', embedding);
      tensors.set('lm_head.weight', embedding);
    }, 'tied lm_head.weight ×1');
    expect(faults[0]).toMatchObject({
      found: { dtype: 'F32', shape: [17, 8], sameAs: 'embed_tokens.weight' },
    });
  });

  it('two tensors of one storage', () =>
    expectFaults((tensors) => {
      const [u] = every('attention.q_proj.weight').map((name) => tensors.get(name));
      if (u) tensors.set('layers.0.attention.k_proj.weight', u);
    }, 'tied layers.0.attention.k_proj.weight ×1'));

  it('nothing for tensors with equal values', () =>
    expectFaults((tensors) => {
      for (const name of [...every('ln_input.weight'), 'norm.weight', 'norm.bias']) {
        tensors.set(name, workshop.tensor([8], { seed: 1 }));
      }
      // Equal tables in some layers are not a shared table.
      for (const name of every('srte.freqs').slice(0, 3)) {
        tensors.set(name, workshop.tensor([1, 12, 8], { seed: 1 }));
      }
    }));

  it('all kinds are tested above', () => {
    expect([...exercised].sort()).toEqual([...FAULT_KINDS].sort());
  });
});

describe('without reading values,', () => {
  const shared = describeModel({ srte_share_across_layers: true, tie_word_embeddings: true });

  it('tensors at different offsets may be equal', () => {
    expect(reconcileIndex(shared, changed({})).faults).toEqual([]);
  });

  it('tensors at one place are equal unless their types differ', () => {
    const tied = changed({ tie_word_embeddings: true });
    expect(faultTexts(reconcileIndex(describeModel(), tied))).toEqual(['tied lm_head.weight ×1']);
    const cast = changed({}, (tensors) =>
      tensors.set('lm_head.weight', workshop.tensor([17, 8], { dtype: 'F16' })),
    );
    expect(faultTexts(reconcileIndex(shared, cast))).toEqual(['not-tied lm_head.weight ×1']);
  });
});

describe('a note is given:', () => {
  const notes = async (checkpoint: Checkpoint, config = {}) =>
    (await reconcile(describeModel(config), checkpoint)).notes;

  it('buffers that safetensors leaves out', async () => {
    const config = { srte_share_across_layers: true, tie_word_embeddings: true, num_layers: 2 };
    const tensors = workshop.stateDict(describeModel(config).model, false);
    for (const name of ['lm_head.weight', 'layers.0.srte.freqs', 'layers.1.srte.freqs']) {
      tensors.delete(name);
    }
    const aliases = new Map([['lm_head.weight', 'embed_tokens.weight']]);
    const file = checkpointOf(tensors, { format: 'safetensors', aliases });
    const result = await reconcile(describeModel(config), file);
    expect(result.matches).toBe(true);
    expect(result.notes).toEqual([
      {
        severity: 'note',
        kind: 'buffers-left-out',
        names: [0, 1].flatMap((layer) =>
          ['inv_freq', 'cos_cached', 'sin_cached'].map(
            (leaf) => `layers.${layer}.attention.rope.${leaf}`,
          ),
        ),
      },
    ]);
  });

  it('not for an alias of another tensor, which is a fault', async () => {
    const tensors = workshop.stateDict(describeModel().model, false);
    tensors.delete('lm_head.weight');
    const aliases = new Map([['lm_head.weight', 'embed_tokens.weight']]);
    const file = checkpointOf(tensors, { format: 'safetensors', aliases });
    expect(faultTexts(await reconcile(describeModel(), file))).toEqual(['tied lm_head.weight ×1']);
  });

  it('names that PyTorch needs', async () => {
    const config = { tie_word_embeddings: true };
    const checkpoint = changed(config, (tensors) => {
      tensors.delete('embed_tokens.weight');
      tensors.delete('layers.3.attention.rope.inv_freq');
    });
    expect(await notes(checkpoint, config)).toEqual([
      {
        severity: 'warning',
        kind: 'strict-load',
        names: ['embed_tokens.weight', 'layers.3.attention.rope.inv_freq'],
      },
    ]);
  });

  it('equal values where the config has separate tensors', async () => {
    const checkpoint = changed({}, (tensors) => {
      for (const name of every('srte.freqs')) {
        tensors.set(name, workshop.tensor([1, 12, 8], { seed: 1 }));
      }
      for (const name of ['embed_tokens.weight', 'lm_head.weight']) {
        tensors.set(name, workshop.tensor([17, 8], { seed: 2 }));
      }
    });
    const { matches, notes: given } = await reconcile(describeModel(), checkpoint);
    expect(matches).toBe(true);
    expect(given).toEqual([
      {
        severity: 'note',
        kind: 'equal-values',
        names: ['lm_head.weight', ...every('srte.freqs').slice(1)],
        bytes: (17 * 8 + 3 * 12 * 8) * 4,
      },
    ]);
  });

  it('copies of tied tensors', async () => {
    const config = { tie_word_embeddings: true };
    const checkpoint = changed(config, (tensors) => {
      tensors.set('embed_tokens.weight', workshop.tensor([17, 8], { seed: 1 }));
      tensors.set('lm_head.weight', workshop.tensor([17, 8], { seed: 1 }));
    });
    expect(await notes(checkpoint, config)).toEqual([
      { severity: 'note', kind: 'stored-again', names: ['lm_head.weight'], bytes: 17 * 8 * 4 },
    ]);
  });
});

describe('suggestions', () => {
  const suggested = async (config: Record<string, unknown>, checkpoint: Checkpoint) => {
    const { suggestions } = await reconcile(describeModel(config), checkpoint);
    return suggestions.map((each) => ({
      ...(each.kind === 'config'
        ? Object.fromEntries(each.set.map(({ path, value }) => [path, value]))
        : { prefix: each.prefix }),
      leaves: each.leaves,
    }));
  };

  it.each([
    [{}, { vocab_size: 16 }],
    [{}, { max_position_embeddings: 13 }],
    [{}, { num_layers: 5 }],
    [{}, { num_layers: 3 }],
    [{}, { num_heads: 4 }],
    [{}, { gate_rank: 3 }],
    [{}, { use_alignment: false }],
    [{}, { tie_word_embeddings: true }],
    [{ tie_word_embeddings: true }, { tie_word_embeddings: false }],
    [{ use_alignment: false }, { use_alignment: true }],
    [{}, { srte_share_across_layers: true }],
    [{ srte_share_across_layers: true }, { srte_share_across_layers: false }],
    [{}, { srte_encoding: 'sincos' }],
    [{ srte_encoding: 'sincos' }, { srte_encoding: 'learnable' }],
    [{}, { srte_factorized_rank: 3 }],
    [{ srte_factorized_rank: 3 }, { srte_factorized_rank: 4 }],
    [{ srte_factorized_rank: 3 }, { srte_factorized_rank: 0 }],
    [{}, { hidden_size: 16, num_heads: 4 }],
    [{}, { srte_share_across_layers: true, srte_factorized_rank: 2, tie_word_embeddings: true }],
  ])('lead from config %j to checkpoint %j', async (config, stored) => {
    const right = Object.fromEntries(
      Object.entries(stored).map(([key, value]) => [`model.${key}`, value]),
    );
    expect(await suggested(config, changed({ ...config, ...stored }))).toEqual([
      { ...right, leaves: 0 },
    ]);
  });

  it('count the remaining faults', async () => {
    const checkpoint = changed({ num_layers: 5 }, (tensors) => tensors.delete('norm.bias'));
    expect(await suggested({}, checkpoint)).toEqual([{ 'model.num_layers': 5, leaves: 1 }]);
  });

  it('are empty when no change helps', async () => {
    const checkpoint = changed({}, (tensors) => tensors.delete('norm.bias'));
    expect(await suggested({}, checkpoint)).toEqual([]);
  });

  it('are empty for another model', async () => {
    const foreign = new Map([['tok.weight', workshop.tensor([17, 8])]]);
    expect(await suggested({}, checkpointOf(foreign))).toEqual([]);
  });

  it('remove the prefix of all names', async () => {
    const tensors = [...workshop.stateDict(describeModel().model)];
    const wrapped = new Map(tensors.map(([name, tensor]) => [`model.${name}`, tensor]));
    expect(await suggested({}, checkpointOf(wrapped))).toEqual([{ prefix: 'model.', leaves: 0 }]);
  });

  it('are never an invalid config', async () => {
    // Twenty heads do not divide a width of 24, and the number of heads cannot be inferred.
    const checkpoint = changed({ hidden_size: 24, num_heads: 12 }, (tensors) => {
      for (const name of every('attention.rope.inv_freq')) tensors.delete(name);
    });
    expect(await suggested({ hidden_size: 80, num_heads: 20 }, checkpoint)).toEqual([]);
  });
});
