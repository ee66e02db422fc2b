import * as Args from '@oclif/core/args';
import type { Command } from '@oclif/core/command';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { type CompletedCommand, completionScript, SHELLS, type Shell } from '../cli/completion.js';
import { baseFlags, formatFlag } from '../cli/flags.js';
import { toJson } from '../text/escape.js';

export default class Completion extends BaseCommand {
  static override summary = 'Print a completion script for bash, zsh or fish.';
  static override description =
    'The shell then completes commands, flags, their values and file names. To switch it on for good:\n\n' +
    "  bash: echo 'source <(minimind completion bash)' >> ~/.bashrc\n" +
    "  zsh:  echo 'source <(minimind completion zsh)' >> ~/.zshrc (after compinit)\n" +
    '  fish: minimind completion fish > ~/.config/fish/completions/minimind.fish';
  static override examples = [
    '<%= config.bin %> <%= command.id %> bash',
    '<%= config.bin %> <%= command.id %> zsh -o _minimind',
  ];

  // A script has no other formats.
  static override baseFlags = { ...baseFlags, format: formatFlag(['table', 'json']) };
  static override args = {
    shell: Args.string({ required: true, options: [...SHELLS], description: 'the shell' }),
  };

  async run() {
    const { args, flags } = await this.parse(Completion);
    const shell = args.shell as Shell;
    const script = completionScript(shell, this.config.bin, this.config.commands.map(completed));
    const result = { schema: 'minimind/completion@1', shell, script } as const;
    await this.write(flags, formatOf(flags) === 'json' ? toJson(result) : script);
    return result;
  }
}

function completed({ id, summary, flags, args }: Command.Loadable): CompletedCommand {
  const [argument] = Object.values(args);
  return {
    name: id.replaceAll(':', ' '),
    summary: summary ?? '',
    argument: argument ? (argument.options ?? 'file') : 'none',
    flags: Object.values(flags)
      .filter(({ hidden }) => !hidden)
      .map((flag) => ({
        name: flag.name,
        char: flag.char,
        summary: flag.summary ?? flag.description ?? '',
        takesValue: flag.type === 'option',
        isRepeatable: flag.type === 'option' && flag.multiple === true,
        options: flag.type === 'option' ? flag.options : undefined,
      })),
  };
}
