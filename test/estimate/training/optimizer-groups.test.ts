import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  GROUP_RULE_NAMES,
  optimizerGroups,
  parseGroupRule,
  trainedTensors,
} from '../../../src/estimate/training/optimizer-groups.js';
import { openModelSource } from '../../../src/input/model-input/model-source.js';
import { inPackage } from '../../fixtures.js';

interface Rule {
  readonly undecayed: readonly string[];
  readonly decayed_parameters: number;
}

interface Case {
  readonly parameters: number;
  readonly every: readonly string[];
  readonly nanogpt: Rule;
  readonly huggingface: Rule;
}

const { cases }: { readonly cases: Readonly<Record<string, Case>> } = JSON.parse(
  fs.readFileSync(inPackage('fixtures/training/groups.json'), 'utf8'),
);

const modelOf = async (file: string) =>
  (await (await openModelSource(inPackage(file), {})).model([])).model;

const namesOf = (tensors: readonly { readonly tensor: { readonly name: string } }[]) =>
  tensors.map(({ tensor }) => tensor.name).toSorted();

describe('optimizer groups', () => {
  it.each(Object.entries(cases))(
    'of %s equal those of nanoGPT and the Trainer',
    async (name, expected) => {
      const model = await modelOf(`fixtures/hf/${name}`);
      expect(namesOf(trainedTensors(model))).toEqual(expected.every.toSorted());
      for (const rule of ['nanogpt', 'huggingface'] as const) {
        const groups = optimizerGroups(model, rule);
        const group = (decayed: boolean) => groups.find(({ isDecayed }) => isDecayed === decayed);
        expect(namesOf(group(false)?.tensors ?? [])).toEqual(expected[rule].undecayed.toSorted());
        expect(group(true)?.parameters).toBe(expected[rule].decayed_parameters);
        expect(groups.reduce((sum, { parameters }) => sum + parameters, 0)).toBe(
          expected.parameters,
        );
      }
    },
  );

  it('have a tied head once, as the embedding', async () => {
    const model = await modelOf('fixtures/hf/llama-tied-rope3');
    const [group] = optimizerGroups(model, 'all');
    expect(group?.kinds.find(({ kind }) => kind === 'embedding')?.tensors).toBe(1);
    expect(namesOf(group?.tensors ?? [])).not.toContain('lm_head.weight');
  });

  it('have the kinds of tensors of a hybrid', async () => {
    const model = await modelOf('configs/hybrid/tiny.yaml');
    for (const rule of GROUP_RULE_NAMES) {
      const groups = optimizerGroups(model, rule);
      const kinds = groups.flatMap((group) => group.kinds.map(({ kind }) => kind));
      expect(kinds).toEqual(
        expect.arrayContaining(['srte', 'norm', 'bias', 'embedding', 'matrix']),
      );
      expect(groups.flatMap(({ tensors }) => tensors)).toHaveLength(trainedTensors(model).length);
    }
  });

  it.each([
    ['HF', 'huggingface'],
    ['Hugging Face', 'huggingface'],
    ['nanoGPT', 'nanogpt'],
    ['minimind', 'all'],
    ['constructor', undefined],
  ])('follow the rule written as %s: %s', (text, rule) => {
    expect(parseGroupRule(text)).toBe(rule);
  });
});
