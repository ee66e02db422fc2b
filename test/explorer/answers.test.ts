import { expect, test } from 'vitest';
import { fitAnswer, fitAnswers } from '../../src/explorer/answers.js';
import { fitLine } from '../../src/explorer/command-lines.js';
import type { ExplorerSetting } from '../../src/explorer/explorer-state.js';
import { factsOf, fitTiles } from '../../src/explorer/figures.js';
import { fitReport } from '../../src/report/fit/fit-report.js';

const LARGE = `model:
  family: llama
  vocab_size: 128256
  hidden_size: 8192
  intermediate_size: 28672
  num_hidden_layers: 80
  num_attention_heads: 64
  num_key_value_heads: 8
  max_position_embeddings: 131072
`;

test.each<ExplorerSetting>([{}, { gpu: 'dgx-h100', context: 8192 }, { gpus: 8, batch: 4 }])(
  'shows the figures of the whole answer without looking for its proposals: %j',
  async (setting) => {
    const model = { name: 'large.yaml', text: LARGE };
    const [whole, shown] = [await fitAnswer(model, setting), await fitAnswers(model, setting)];
    if (!whole || !('serving' in whole) || !shown || !('serving' in shown.fit)) {
      throw new Error('expected answers');
    }
    const argv = fitLine(model, setting).split(' ').slice(2);
    const report = fitReport(whole, { explain: false, argv });
    expect(shown.report?.verdict).toEqual(report.verdict);
    expect(factsOf(shown.report)).toEqual(factsOf(report));
    expect(fitTiles(shown.fit)).toEqual(fitTiles(whole));
    expect(whole.training?.fit.remedies).not.toEqual([]);
    expect(shown.fit.training?.fit.remedies).toEqual([]);
  },
);

test('has no answers for an invalid text', async () => {
  const model = { name: 'x.yaml', text: 'model: {family: llama, hidden_size: -1}\n' };
  expect([await fitAnswer(model, {}), await fitAnswers(model, {})]).toEqual([undefined, undefined]);
});
