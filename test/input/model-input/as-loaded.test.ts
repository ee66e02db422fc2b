/** Names of checkpoints as transformers loads them: fixtures/loading, read from its classes and from files that it loads. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Shape } from '../../../src/base/tensor/dtype.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { parameterNames } from '../../../src/checkpoint/reconcile/faults.js';
import { reconcile } from '../../../src/checkpoint/reconcile/reconcile.js';
import type { StoredTensor } from '../../../src/checkpoint/stored-tensor.js';
import {
  adjustedToCheckpoint,
  descriptionOf,
} from '../../../src/input/model-input/checkpoint/checkpoint-config.js';
import { ignoredAround } from '../../../src/input/model-input/parts-left-out.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { type FamilyName, loadFamily } from '../../../src/model/architecture/families.js';
import { isIgnoredOnLoad } from '../../../src/model/architecture/family.js';
import { tensorsOf } from '../../../src/model/architecture/walk.js';
import { safetensorsFile } from '../../checkpoint/reconcile/files.js';
import { Workshop } from '../../checkpoint/reconcile/support.js';
import { inPackage, readJson } from '../../fixtures.js';
import { sampled } from '../../sampled.js';

interface Classes {
  readonly text: Readonly<Record<string, readonly TextClass[]>>;
  readonly around: Readonly<
    Record<string, { readonly text: string; readonly ignored: readonly string[] }>
  >;
}

interface TextClass {
  readonly configs: readonly string[];
  readonly ignored: readonly string[];
  readonly may_be_missing: readonly string[];
  readonly tied: Readonly<Record<string, string>>;
  readonly base: string;
}

interface Layouts {
  readonly candidates: readonly string[];
  readonly kinds: Readonly<Record<string, Layout>>;
}

interface Layout {
  readonly case: string;
  readonly saved: Readonly<Record<string, Shape>>;
  readonly held: Readonly<Record<string, Shape>>;
  readonly ignored: readonly string[];
}

const { text, around } = readJson<Classes>('fixtures/loading/classes.json');
const { candidates, kinds } = readJson<Layouts>('fixtures/loading/layouts.json');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const workshop = new Workshop();
afterAll(() => {
  workshop.close();
  fs.rmSync(folder, { recursive: true });
});

const hf = (name: string) => inPackage('fixtures/hf', name);
const patternsOf = (ignored: readonly { readonly pattern: string | RegExp }[]) =>
  ignored.flatMap(({ pattern }) => (typeof pattern === 'string' ? [] : [pattern.source]));

/** Names of a pattern: `layers.{0-1}.experts.{0-3}.w1`. */
function expanded(pattern: string): string[] {
  const [whole, list] = /\{([^}]*)\}/.exec(pattern) ?? [];
  if (whole === undefined || list === undefined) return [pattern];
  const numbers = list.split(',').flatMap((run) => {
    const [from = 0, to = from] = run.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
  return numbers.flatMap((number) => expanded(pattern.replace(whole, String(number))));
}

type Tensors = Map<string, StoredTensor>;

/** Faults and notes of a file with changed tensors of a case, beside the config of the case. */
async function reconciled(name: string, change: (tensors: Tensors) => Tensors) {
  const original = openCheckpoint(hf(name));
  const file = path.join(folder, `${name}-${fs.readdirSync(folder).length}.safetensors`);
  await safetensorsFile(file, change(new Map(original.tensors)));
  original.close();
  const checkpoint = openCheckpoint(file);
  try {
    const loaded = adjustedToCheckpoint(await loadModelFile(hf(name)), checkpoint);
    return await reconcile(descriptionOf(loaded), checkpoint);
  } finally {
    checkpoint.close();
    fs.rmSync(file);
  }
}

const inLayout =
  (layout: Layout, kind: 'saved' | 'held') =>
  (tensors: Tensors): Tensors => {
    const other = kind === 'saved' ? layout.held : layout.saved;
    for (const pattern of Object.keys(other)) {
      for (const name of expanded(pattern)) tensors.delete(name);
    }
    for (const [pattern, shape] of Object.entries(layout[kind])) {
      for (const name of expanded(pattern)) tensors.set(name, workshop.tensor(shape));
    }
    return tensors;
  };

describe('families know what their classes in transformers do:', () => {
  it.each(Object.entries(text))('%s', async (kind, classes) => {
    const family = await loadFamily(kind as FamilyName);
    for (const { configs, ignored, may_be_missing } of classes) {
      expect(may_be_missing).toEqual([]);
      for (const config of configs) {
        const { document } = await loadModelFile(hf(config));
        const own = (family.ignored?.(document) ?? []).filter(isIgnoredOnLoad);
        expect([config, ...patternsOf(own).sort()]).toEqual([config, ...ignored]);
      }
    }
  });

  it.each(
    Object.entries(text).flatMap(([kind, [first]]) =>
      first && Object.keys(first.tied).length > 0 ? [[kind, first] as const] : [],
    ),
  )('ties of %s', async (_, { configs: [config = ''], tied }) => {
    const { model } = await loadModelFile(hf(config), { set: ['model.tie_word_embeddings=true'] });
    for (const pair of Object.entries(tied)) {
      expect(tensorsOf(model).map(parameterNames)).toContainEqual(expect.arrayContaining(pair));
    }
  });

  const SAME: Readonly<Record<string, string>> = {
    qwen2_vl_text: 'qwen2',
    qwen2_5_vl_text: 'qwen2',
    qwen3_vl_text: 'qwen3',
    qwen3_vl_moe_text: 'qwen3_moe',
    glm4v_text: 'glm4',
  };

  it.each(Object.entries(around))(
    'with a model around: %s',
    async (kind, { text: of, ignored }) => {
      const [first] = text[SAME[of] ?? of] ?? [];
      const { family, document } = await loadModelFile(hf(first?.configs[0] ?? ''));
      const own = ignoredAround(kind, family.ignored?.(document) ?? []).filter(isIgnoredOnLoad);
      // Positions of images are in a part that is left out, and layers are those of another config.
      const isShared = (pattern: string) =>
        pattern.includes('position_ids') || pattern.startsWith('layers.');
      const here = (patterns: readonly string[]) =>
        patterns.filter((each) => !isShared(each)).sort();
      expect(here(patternsOf(own))).toEqual(here(ignored));
    },
  );
});

describe('the layouts of one model in files of transformers match its config:', () => {
  const layouts = Object.entries(kinds).flatMap(([kind, layout]) =>
    (['saved', 'held'] as const).flatMap((each) =>
      Object.keys(layout[each]).length === 0 ? [] : [[kind, each, layout] as const],
    ),
  );

  it.each(layouts)('%s as %s', async (_, each, layout) => {
    const { faults } = await reconciled(layout.case, inLayout(layout, each));
    expect(faults).toEqual([]);
  });

  it.each(sampled(Object.entries(kinds), 8))(
    '%s without the prefix of the whole model',
    async (kind, layout) => {
      const prefix = `${text[kind]?.[0]?.base}.`;
      const { faults } = await reconciled(
        layout.case,
        (tensors) =>
          new Map(
            [...inLayout(layout, 'saved')(tensors)].map(([name, tensor]) => [
              name.startsWith(prefix) ? name.slice(prefix.length) : name,
              tensor,
            ]),
          ),
      );
      expect(faults).toEqual([]);
    },
  );
});

describe('a language model is found in files of models around it:', () => {
  const { prefixes } = readJson<{
    readonly prefixes: Readonly<Record<string, { readonly head: string }>>;
  }>('fixtures/loading/around.json');

  it.each(Object.entries(prefixes))('%s', async (prefix, { head }) => {
    const { faults } = await reconciled(
      'llama',
      (tensors) =>
        new Map(
          [...tensors].map(([name, tensor]) => [
            name.replace(/^model\./, prefix).replace(/^lm_head\b/, head),
            tensor,
          ]),
        ),
    );
    expect(faults).toEqual([]);
  });
});

describe('language models with names of their own are found in files of models around them:', () => {
  const { cases } = readJson<{
    readonly cases: Readonly<
      Record<
        string,
        { readonly own: string; readonly prefixes: Readonly<Record<string, string | null>> }
      >
    >;
  }>('fixtures/loading/inner.json');
  const places = Object.entries(cases).flatMap(([name, { own, prefixes }]) =>
    Object.entries(prefixes).map(([prefix, head]) => [name, prefix, own, head] as const),
  );

  it.each(places)('%s in %s', async (name, prefix, own, head) => {
    const { faults } = await reconciled(
      name,
      (tensors) =>
        new Map(
          [...tensors].map(([stored, tensor]) => [
            stored.startsWith(own)
              ? `${prefix}${stored.slice(own.length)}`
              : stored.replace(/^(?:lm_head|embed_out)\b/, head ?? 'tied'),
            tensor,
          ]),
        ),
    );
    expect(faults).toEqual([]);
  });
});

/** Tensors that no run needs, although transformers reports them: masks of old files, and layers that predict further tokens. */
// The cases have three layers, and the fourth predicts.
const PREDICTING = ['k_norm', 'k_proj', 'q_norms', 'v_norm', 'v_proj'].map(
  (leaf) => `model.layers.3.self_attn.${leaf}.weight`,
);

const KNOWN_HERE: Readonly<Record<string, readonly string[]>> = {
  codegen: ['transformer.h.0.attn.bias'],
  deepseek_v3: PREDICTING,
  glm4_moe_lite: PREDICTING,
  gpt_bigcode: ['transformer.h.0.attn.bias'],
  gptj: ['transformer.h.0.attn.bias'],
  'openai-gpt': ['transformer.h.0.attn.bias'],
};

describe('tensors that transformers ignores are no faults, and others are:', () => {
  it.each(sampled(Object.entries(kinds), 8, ([, { ignored }]) => ignored.join()))(
    '%s',
    async (kind, layout) => {
      const added: string[] = [];
      const { faults, notes } = await reconciled(layout.case, (tensors) => {
        added.push(...candidates.filter((name) => !tensors.has(name)));
        for (const name of added) tensors.set(name, workshop.tensor([3]));
        return tensors;
      });
      const ignored = notes.flatMap((each) =>
        each.kind === 'ignored-by-transformers' ? each.names : [],
      );
      const known = notes.flatMap((each) => (each.kind === 'kept-by-others' ? each.names : []));
      expect(ignored.toSorted()).toEqual(layout.ignored.toSorted());
      expect(known.toSorted()).toEqual(KNOWN_HERE[kind] ?? []);
      const strange = added.filter((name) => !ignored.includes(name) && !known.includes(name));
      expect(faults.flatMap(({ names }) => names).toSorted()).toEqual(strange.toSorted());
    },
  );
});
