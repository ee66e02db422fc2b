import * as Args from '@oclif/core/args';
import { isRecord } from '../base/values.js';
import { BaseCommand } from '../cli/base-command.js';
import { baseFlags, formatFlag } from '../cli/flags/flags.js';
import {
  DEFAULT_FAMILY,
  FAMILY_NAMES,
  type FamilyName,
  loadFamily,
} from '../model/architecture/families.js';
import { jsonSchemaOf } from '../model/architecture/family.js';

export default class Schema extends BaseCommand {
  static override summary = 'Print the JSON Schema of a config file, for editors.';
  static override description =
    'Editors use it to complete keys and to mark mistakes. For the YAML language server (VS Code, ' +
    'Neovim, JetBrains), begin a config with this line:\n\n' +
    '  # yaml-language-server: $schema=./hybrid.schema.json';
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> hybrid -o hybrid.schema.json',
  ];

  // A JSON Schema has no other formats.
  static override baseFlags = { ...baseFlags, format: formatFlag(['json']) };
  static override args = {
    family: Args.string({
      options: [...FAMILY_NAMES],
      default: DEFAULT_FAMILY,
      description: 'the model family (minimind list --details)',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(Schema);
    const schema = jsonSchemaOf(await loadFamily(args.family as FamilyName));
    schema.$id = `${schemaFolder(this.config.pjson.repository)}${schema.$id}`;
    await this.writeJson(flags, schema);
    return schema;
  }
}

/** Where the JSON Schemas of the package are published; empty before it has a repository. As scripts/publisher.js has it. */
function schemaFolder(repository: unknown): string {
  const url = isRecord(repository) ? repository.url : undefined;
  if (typeof url !== 'string') return '';
  return `${url.replace(/^git\+|\/?(?:\.git)?$/g, '')}/raw/HEAD/docs/schemas/`;
}
