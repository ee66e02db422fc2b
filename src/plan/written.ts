/** A row of a plan as a config file. */
import { documentText } from '../config/document.js';
import { UserError } from '../errors.js';
import type { Plan } from './plan.js';

/** @throws UserError when there is no such row. */
export function writtenRow({ rows, family, limits, inference }: Plan, place: number): string {
  const row = rows[place - 1];
  if (row === undefined) {
    throw new UserError('usage', `--write: there is no row ${place}; the plan has ${rows.length}`, {
      suggestion: 'write one that is shown, or show more with --top',
    });
  }
  const { parameters, memory, document } = row;
  const comments = [
    `A ${family} model of ${grouped(parameters.value)} parameters, planned for at most ${grouped(limits.maxParameters)}.`,
    `Inference takes ${grouped(memory.value)} bytes at ${inference.batch} × ${inference.context} tokens in ${inference.dtype}.`,
    `Completion in an editor: minimind schema ${family} -o ${family}.schema.json`,
    `yaml-language-server: $schema=./${family}.schema.json`,
  ];
  return `${comments.map((line) => `# ${line}\n`).join('')}${documentText(document)}`;
}

const grouped = (value: number | bigint) => value.toLocaleString('en-US');
