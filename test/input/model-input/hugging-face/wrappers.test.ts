import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../../src/base/errors.js';
import { openCheckpoint } from '../../../../src/checkpoint/open.js';
import { parseDocument } from '../../../../src/config/document.js';
import { checkpointWeights } from '../../../../src/engine/weights/weights.js';
import { openCheckpointModel } from '../../../../src/input/model-input/checkpoint/checkpoint-model.js';
import { textPartOf } from '../../../../src/input/model-input/hugging-face/text-part.js';
import {
  TEXT_KINDS,
  TIED_BY_DEFAULT,
  WRAPPERS,
} from '../../../../src/input/model-input/hugging-face/wrappers.js';
import { modelOf } from '../../../../src/input/model-input/model-file.js';
import { countParameters } from '../../../../src/model/budget/parameters.js';
import { stateOf } from '../../../../src/model/budget/state.js';
import { differenceAt, idsOf, valuesOf } from '../../../engine/fixture-models.js';
import { referenceEngine } from '../../../engine/reference-engine.js';
import { inPackage, readJson } from '../../../fixtures.js';

type Values = Readonly<Record<string, unknown>>;

interface Walked {
  readonly tied_texts: readonly string[];
  readonly texts: Readonly<Record<string, Values>>;
  readonly wrappers: Readonly<Record<string, WalkedClass>>;
}

interface WalkedClass {
  readonly text: string;
  readonly takes_any: boolean;
  readonly defaults: Values;
  readonly absent: Values;
  readonly head: 'own' | readonly string[];
  readonly ties: readonly boolean[];
}

const walked = readJson<Walked>('fixtures/text-parts/wrappers.json');
const FLAGS = [undefined, true, false] as const;
const tie = (flag: boolean | undefined) =>
  flag === undefined ? {} : { tie_word_embeddings: flag };

/** `rope_theta` is where older files have it, and our table. */
const withTheta = ({ rope_parameters: rotary, ...values }: Values): Values =>
  rotary ? { ...values, rope_theta: (rotary as Values).rope_theta } : values;

describe('the table of classes around a language model', () => {
  it('has the classes of transformers', () => {
    expect(Object.keys(WRAPPERS).sort()).toEqual(Object.keys(walked.wrappers).sort());
    expect([...TIED_BY_DEFAULT].sort()).toEqual([...walked.tied_texts].sort());
  });

  it.each(Object.entries(walked.wrappers))('agrees with %s', (kind, found) => {
    const wrapper = WRAPPERS[kind] ?? expect.unreachable();
    expect(wrapper.text).toBe(found.text);
    expect(wrapper.takes?.length === 1).toBe(!found.takes_any);
    expect(wrapper.logits ?? []).toEqual(found.head);
    expect(wrapper.defaults ?? {}).toEqual(found.defaults);
    // Of attention, which a test of PaliGemma has, and of images.
    const { use_bidirectional_attention: _, num_image_tokens: __, ...absent } = found.absent;
    // Its class takes another kind there, which it cannot hold.
    if (kind !== 'granite4_vision' && wrapper.defaults === undefined) {
      expect(withTheta(wrapper.absent ?? {})).toEqual(withTheta(absent));
    }
  });

  it.each(Object.entries(walked.wrappers).filter(([kind]) => textPartOf({ model_type: kind })))(
    'ties the head as %s',
    (kind, { text, takes_any, ties }) => {
      // The text part of the script: a kind that does not tie its head itself.
      const isNamed = takes_any && !['paligemma', 'granite4_vision'].includes(kind);
      const model_type = isNamed ? 'llama' : text;
      const own = FLAGS.flatMap((outer) =>
        FLAGS.map((inner) => {
          const part = { model_type, ...tie(inner) };
          const read = textPartOf({ model_type: kind, text_config: part, ...tie(outer) });
          return read?.config.tie_word_embeddings;
        }),
      );
      expect(own).toEqual(ties);
    },
  );

  it.each(Object.entries(walked.texts))('has the defaults of %s', (kind, found) => {
    const { defaults = {} } = TEXT_KINDS[kind] ?? expect.unreachable();
    // The family has another name for the number of experts.
    const expected: Values = Object.fromEntries(
      Object.entries(withTheta(found)).map(([key, value]) => [
        key === 'num_local_experts' ? 'num_experts' : key,
        value,
      ]),
    );
    for (const [key, value] of Object.entries(defaults)) {
      // A rotated part of a head is one where the class has no key of it.
      expect([key, value]).toEqual([key, key === 'partial_rotary_factor' ? 1 : expected[key]]);
    }
    const sizes = Object.keys(expected).filter((key) => /_size$|^num_|_eps$|_theta$/.test(key));
    expect(Object.keys(defaults)).toEqual(expect.arrayContaining(sizes.filter(isRead(kind))));
  });
});

/** The base of GLM 4 is that of GLM-4V, whose class lists it for another reason. */
const isRead = (kind: string) => (key: string) => !(kind === 'glm4v_text' && key === 'rope_theta');

interface Case {
  readonly name: string;
  readonly config: Values;
  readonly parameters: number;
  readonly cache_bytes: number;
  readonly input_ids?: number[][];
}

/** Another output of wrapper_cases.py can be named. */
const OTHERS = process.env.MINIMIND_WRAPPER_CASES;
const FOLDER = OTHERS ?? inPackage('fixtures/text-parts/wrapped');
const cases: readonly Case[] = JSON.parse(fs.readFileSync(`${FOLDER}.json`, 'utf8'));

/** Models that are refused, with the reason. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  'cosmos3_omni-40-0': /sliding_window 4 is not supported/,
  'cosmos3_omni-40-1': /the head of gptj has a bias, which that of cosmos3_omni lacks/,
  'hyperclovax_vision_v2-40-0': /multiplies by logits_scaling 8, by which granite divides/,
  'hyperclovax_vision_v2-40-1': /multiplies by logits_scaling 8, by which granitemoehybrid/,
  'idefics2-40-0': /does not give gemma4_text the tokens of its inputs for each layer/,
  'lfm2_vl-40-0': /does not give gemma3n_text the tokens of its inputs for each layer/,
  'llava_next-40-1': /does not give gemma3n_text the tokens of its inputs for each layer/,
  'ovis2-40-0': /the head of ovis2 has the vocab_size of the whole, 151643/,
  'qwen3_vl-40-1': /sliding_window 4 is not supported/,
  'shieldgemma2-40-1': /the head of ernie4_5_moe has a bias/,
};

const read = ({ config }: Case) => modelOf(parseDocument(JSON.stringify(config), 'config.json'));

/** Whether a case is refused, which is right in a sweep: the reason of each in the fixture is known. */
async function refusalOf(each: Case): Promise<string | undefined> {
  try {
    await read(each);
    return undefined;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return JSON.stringify(error.problems);
  }
}

describe('the language model of a published model', () => {
  const { cases: published } = readJson<{ cases: readonly Case[] }>(
    'fixtures/text-parts/published.json',
  );

  it.each(published.map((each) => [each.name, each] as const))(
    '%s has the parameters and the cache of the class around it',
    async (_, each) => {
      const { model } = await read(each);
      const state = stateOf(model, { batch: 2, context: 13, dtype: 'f32' });
      expect([countParameters(model).parameters, Number(state.total.value)]).toEqual([
        each.parameters,
        each.cache_bytes,
      ]);
    },
  );
});

describe('the language model of a random class around it', () => {
  it('comes with most classes', () => {
    const kinds = new Set(cases.map(({ config }) => config.model_type));
    expect(kinds.size).toBeGreaterThan(OTHERS === undefined ? 50 : 0);
  });

  it.each(cases.map((each) => [each.name, each] as const))(
    '%s has the parameters and the cache of the class',
    async (name, each) => {
      const refusal = await refusalOf(each);
      if (refusal !== undefined && OTHERS !== undefined) return;
      const reason = REFUSED[name];
      if (reason) expect(refusal).toMatch(reason);
      else expect(refusal).toBeUndefined();
      if (refusal !== undefined) return;
      const { model } = await read(each);
      const state = stateOf(model, { batch: 2, context: 13, dtype: 'f32' });
      expect([countParameters(model).parameters, Number(state.total.value)]).toEqual([
        each.parameters,
        each.cache_bytes,
      ]);
    },
  );

  it.each(
    cases.filter(({ name }) => fs.existsSync(`${FOLDER}/${name}`)).map((each) => [each.name, each]),
  )('%s gives the logits of the class', async (name, each) => {
    if ((await refusalOf(each as Case)) !== undefined) return;
    const folder = `${FOLDER}/${name}`;
    const { model } = await (await openCheckpointModel({ path: folder }, {})).model(undefined);
    const weights = openCheckpoint(`${folder}/model.safetensors`);
    const program = await referenceEngine().load(model, checkpointWeights(model, weights));
    const { output } = await program.run({ ids: idsOf((each as Case).input_ids ?? []) });
    const expected = openCheckpoint(`${folder}/expected.safetensors`);
    const logits = valuesOf(expected.tensors.get('logits') ?? expect.unreachable());
    const largest = logits.data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    expect(differenceAt(output, logits, 1)).toBeLessThan(3e-5 * largest);
  });
});
