import * as Args from '@oclif/core/args';
import { usageError } from '../base/errors.js';
import { ownValue } from '../base/values.js';
import { BaseCommand } from '../cli/base-command.js';
import { listFamilies } from '../cli/family-list.js';
import { details } from '../cli/flags/flags.js';
import { globMatcher } from '../cli/name-filter.js';
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import type { FamilyList, FamilySummary } from '../model/budget/family-counts.js';
import { familiesReport } from '../report/models.js';

export default class List extends BaseCommand {
  static override summary = 'List the model families and their presets.';
  static override description =
    'A preset is a ready config. Use it by name where a config is expected, or copy it with minimind init.';
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> minimind',
    "<%= config.bin %> <%= command.id %> 'rank-*' --json",
  ];

  static override args = {
    pattern: Args.string({
      description: 'a family, or a part of a name; * matches any characters',
    }),
  };
  static override flags = { details };

  async run() {
    const { args, flags } = await this.parse(List);
    const all = await listFamilies();
    const families = args.pattern === undefined ? all : matching(all, args.pattern);
    const result: FamilyList = { schema: 'minimind/list@1', families };
    return this.answer(flags, result, (each) => familiesReport({ ...each, pattern: args.pattern }));
  }
}

/** Names of published models for a use that no family is named after. */
const NAMES_FOR: Readonly<Record<string, string>> = {
  embedding: '{all-minilm-*,all-mpnet-*,e5-*,multilingual-e5-*,bge-*,gte-*}',
};

/** Families of this name with all presets, or else those whose presets match. @throws UserError when there is none. */
function matching(families: readonly FamilySummary[], pattern: string): FamilySummary[] {
  const exact = families.filter(({ name, presets }) => name === pattern && presets.length > 0);
  if (exact.length > 0) return exact;
  const use = pattern.toLowerCase().replace(/s$/, '');
  const isMatch = matcherOf(ownValue(NAMES_FOR, use) ?? pattern);
  const found = families.flatMap((family) => {
    if (isMatch(family.name)) return [family];
    const presets = family.presets.filter(
      ({ name }) => isMatch(name) || isMatch(`${family.name}/${name}`),
    );
    return presets.length > 0 ? [{ ...family, presets }] : [];
  });
  if (found.length > 0) return found;
  const names = families.flatMap(({ name, presets }) => [
    name,
    ...presets.map((each) => each.name),
  ]);
  const close = nearest(pattern, names);
  throw usageError(
    `no family or preset matches ${quote(pattern)}`,
    close ? `did you mean ${close}?` : 'minimind list shows the families',
  );
}

function matcherOf(pattern: string): (name: string) => boolean {
  try {
    return globMatcher(/[*?[{]/.test(pattern) ? pattern : `*${pattern}*`);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usageError(`${quote(pattern)}: ${error.message}`, undefined, error);
  }
}
