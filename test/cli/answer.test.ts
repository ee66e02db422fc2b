import { expect, it } from 'vitest';
import { BaseCommand } from '../../src/cli/base-command.js';
import type { Report, TableBlock } from '../../src/report/kit/report.js';

const TABLE: TableBlock = {
  kind: 'table',
  columns: [{ title: 'tensor', key: 'tensor' }],
  rows: [[{ text: 'layers.0.weight' }]],
};

/** A command whose table for programs is made on request, as that of a checkpoint with a hundred thousand tensors. */
class Listing extends BaseCommand {
  made = 0;
  written = '';

  async run(): Promise<void> {}

  protected override async write(
    _: unknown,
    text: Parameters<BaseCommand['write']>[1],
  ): Promise<void> {
    this.written = [...text].join('');
  }

  async answerIn(format: string): Promise<void> {
    const listing = this;
    const report: Report = {
      verdict: { text: 'one tensor' },
      blocks: [],
      get data() {
        listing.made += 1;
        return TABLE;
      },
    };
    await this.answer({ format } as never, { schema: 'minimind/listing@1' }, () => report);
  }
}

it.each([
  { format: 'table', made: 0, has: 'one tensor' },
  { format: 'csv', made: 1, has: 'layers.0.weight' },
])('makes the long table of CSV only for CSV: $format', async ({ format, made, has }) => {
  const listing = new Listing([], {} as never);
  await listing.answerIn(format);
  expect(listing.written).toContain(has);
  expect(listing.made).toBe(made);
});
