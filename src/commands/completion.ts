import * as Args from '@oclif/core/args';
import type { Command } from '@oclif/core/command';
import { DTYPE_NAMES } from '../base/tensor/dtype.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { baseFlags, formatFlag } from '../cli/flags/flags.js';
import type { CompletedCommand, CompletionResult, Shell } from '../cli/shell-completion.js';
import { completionScript, SHELLS } from '../cli/shell-completion.js';
import { formatPath } from '../config/quote.js';
import { keyPaths } from '../config/schema-structure.js';
import { COLUMN_NAMES } from '../estimate/comparison/columns.js';
import { GPUS } from '../estimate/hardware/gpus.js';
import { MACHINES } from '../estimate/hardware/machines.js';
import { presetNames, publishedPresetNames } from '../input/model-input/locate.js';
import { FAMILY_NAMES, loadFamily } from '../model/architecture/families.js';

export default class Completion extends BaseCommand {
  static override summary = 'Print a completion script for bash, zsh, fish or PowerShell.';
  static override description =
    'The shell then completes commands, flags, their values and file names. To switch it on permanently:\n\n' +
    "  bash: echo 'source <(minimind completion bash)' >> ~/.bashrc\n" +
    "  zsh:  echo 'source <(minimind completion zsh)' >> ~/.zshrc (after compinit)\n" +
    '  fish: minimind completion fish > ~/.config/fish/completions/minimind.fish\n' +
    '  PowerShell: minimind completion powershell | Out-String | Invoke-Expression, in $PROFILE';
  static override examples = [
    '<%= config.bin %> <%= command.id %> bash',
    '<%= config.bin %> <%= command.id %> zsh -o _minimind',
  ];

  static override textEndings = ['.bash', '.zsh', '.fish', '.ps1', '.sh'];
  // A script has no other formats.
  static override baseFlags = { ...baseFlags, format: formatFlag(['table', 'json']) };
  static override args = {
    shell: Args.string({ required: true, options: [...SHELLS], description: 'the shell' }),
  };

  async run() {
    const { args, flags } = await this.parse(Completion);
    const shell = args.shell as Shell;
    const names = await namesToOffer();
    const { aliasesOf } = await import('../cli/foreign/meanings.js');
    const known = new Set(this.config.commandIDs);
    const commands = this.config.commands.map((command) => ({
      ...completed(command, names),
      aliases: aliasesOf(command.id).filter((alias) => !known.has(alias)),
    }));
    const script = completionScript(shell, this.config.bin, commands);
    const result: CompletionResult = { schema: 'minimind/completion@1', shell, script };
    if (formatOf(flags) === 'json') await this.writeJson(flags, result);
    else await this.write(flags, script);
    return result;
  }
}

/** Values of flags without a fixed choice, by flag, and the presets. */
async function namesToOffer() {
  const schemas = await Promise.all(
    FAMILY_NAMES.map(async (name) => (await loadFamily(name)).schema),
  );
  const keys = schemas.flatMap((schema) => [...keyPaths(schema)].filter((path) => path.length > 1));
  const presets = [...presetNames(), ...publishedPresetNames()].map((preset) =>
    preset.slice(preset.indexOf('/') + 1),
  );
  return {
    presets: [...presets, ...presetNames()],
    flags: new Map<string, readonly string[]>([
      ['gpu', [...GPUS, ...MACHINES].map(({ name }) => name)],
      ['set', [...new Set(keys.map((path) => `${formatPath(path)}=`))].sort()],
      ['columns', COLUMN_NAMES],
      ['dtype', [...DTYPE_NAMES, 'fp16', 'fp32', 'fp8', 'int8', 'int4']],
    ]),
  };
}

/** Flags whose values can be files as well. */
const OPEN: ReadonlySet<string> = new Set(['gpu']);

function completed(
  { id, summary, flags, args }: Command.Loadable,
  names: Awaited<ReturnType<typeof namesToOffer>>,
): CompletedCommand {
  const [argument] = Object.values(args);
  const takesPreset = /\bpreset/.test(argument?.description ?? '');
  return {
    name: id.replaceAll(':', ' '),
    summary: summary ?? '',
    argument: argument ? (argument.options ?? 'file') : 'none',
    names: takesPreset ? names.presets : undefined,
    flags: Object.values(flags)
      .filter(({ hidden }) => !hidden)
      .map((flag) => ({
        name: flag.name,
        char: flag.char,
        summary: flag.summary ?? flag.description ?? '',
        takesValue: flag.type === 'option',
        isRepeatable: flag.type === 'option' && flag.multiple === true,
        options: flag.type === 'option' ? (flag.options ?? names.flags.get(flag.name)) : undefined,
        isOpen: OPEN.has(flag.name),
      })),
  };
}
