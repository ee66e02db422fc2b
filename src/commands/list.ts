import { describeFamilies } from '../budget/family-counts.js';
import { BaseCommand } from '../cli/base-command.js';
import { familiesReport } from '../report/models.js';

export default class List extends BaseCommand {
  static override summary = 'List the model families and their presets.';
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --json',
  ];

  async run() {
    const { flags } = await this.parse(List);
    const families = await describeFamilies();
    return this.answer(flags, { schema: 'minimind/list@1', families } as const, familiesReport);
  }
}
