import { describe, expect, it } from 'vitest';
import { FAMILY_NAMES, loadFamily } from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { presetsOf } from '../../../src/model/architecture/presets.js';
import { ownedTensors } from '../../../src/model/architecture/walk.js';
import { forwardFlopsOf } from '../../../src/model/budget/flops.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { countedNodes, type Diagram } from '../../../src/model/diagram/diagram.js';
import { drawModel } from '../../../src/model/diagram/draw-model.js';

const SETTING = { batch: 2, context: 64, causal: false };

/** Every family, with the sizes of its first preset, or those that it has without a config. */
const MODELS = FAMILY_NAMES.map((name) => ({
  name,
  keys: presetsOf(name)[0]?.document.model ?? {},
}));

async function built({ name, keys }: (typeof MODELS)[number]): Promise<LanguageModel> {
  const { build, schema } = await loadFamily(name);
  return build(schema.parse({ model: { ...keys, family: name } }));
}

describe.each(MODELS)('the diagram of $name', (entry) => {
  it('has each tensor in one box, and all FLOPs', { timeout: 60_000 }, async () => {
    const model = await built(entry);
    const diagram = drawModel(model, SETTING);
    const boxes = [...countedNodes(diagram)];
    const tensors = boxes.flatMap(({ node, times }) =>
      node.tensors.map((tensor) => ({ ...tensor, times })),
    );
    const owned = ownedTensors(model);
    expect(new Set(tensors.map(({ name }) => name)).size).toBe(tensors.length);
    const names = new Set(owned.map(({ tensor }) => tensor.name));
    expect(tensors.filter(({ name }) => !names.has(name))).toEqual([]);
    expect(sum(tensors.map(({ count, times }) => count * times))).toBe(owned.length);
    const { parameters, buffers } = countParameters(model);
    expect(total(diagram, 'parameters')).toBe(parameters);
    expect(total(diagram, 'buffers')).toBe(buffers);
    expect(BigInt(diagram.root.flops)).toBe(BigInt(forwardFlopsOf(model, SETTING).total.value));
  });
});

it('gives each use of a stack the work of one pass', async () => {
  const model = await built({ name: 'hrm_text', keys: {} });
  const nodes = [...countedNodes(drawModel(model, SETTING))];
  const uses = nodes.filter(({ node }) => /^[HL]_module$/.test(node.label) && node.flops !== 0);
  // Both stacks have the same sizes.
  expect(new Set(uses.map(({ node }) => String(node.flops))).size).toBe(1);
  expect(sum(uses.map(({ times }) => times))).toBe(8);
});

const sum = (values: readonly number[]) => values.reduce((whole, each) => whole + each, 0);

const total = ({ root, shared }: Diagram, what: 'parameters' | 'buffers') =>
  root[what] + sum(shared.map((each) => each[what]));
