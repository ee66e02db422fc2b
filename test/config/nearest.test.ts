import { describe, expect, it } from 'vitest';
import { nearest } from '../../src/config/nearest.js';

const KEYS = ['num_layers', 'hidden_size', 'vocab_size', 'rope', 'd'];

describe('nearest', () => {
  it.each([
    ['num_layer', 'num_layers'],
    ['num-layers', 'num_layers'],
    ['NumLayers', 'num_layers'],
    ['HIDDEN_SIZE', 'hidden_size'],
    ['hidden_dim', 'hidden_size'],
    ['vocabsize', 'vocab_size'],
    ['ropr', 'rope'],
    ['roep', 'rope'],
    ['D', 'd'],
    ['x', undefined],
    ['', undefined],
    ['colour', undefined],
    ['vocal', undefined],
  ])('finds for "%s": %s', (name, key) => {
    expect(nearest(name, KEYS)).toBe(key);
  });

  it('prefers the closest, then the first', () => {
    expect(nearest('abcd', ['abxx', 'abcx', 'abcy'])).toBe('abcx');
  });
});

it('nearest finds the only name with the same words', () => {
  expect(nearest('layers', ['num_layers', 'num_heads'])).toBe('num_layers');
  expect(nearest('tie_word', ['tie_word_embeddings'])).toBe('tie_word_embeddings');
  expect(nearest('num_layers', ['num_hidden_layers', 'num_experts'])).toBe('num_hidden_layers');
  expect(nearest('rank', ['gate_rank', 'srte_rank'])).toBeUndefined();
});
