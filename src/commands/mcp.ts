import fs from 'node:fs';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { BaseCommand } from '../cli/base-command.js';
import { type baseFlags, offline } from '../cli/flags/flags.js';

export default class Mcp extends BaseCommand {
  static override summary =
    'Answer the questions of agents, as a server of the Model Context Protocol.';
  static override description =
    'Serves the tools validate, profile, fit, compare and inspect on standard input and output. They only read: configs ' +
    'and checkpoints below --root, presets, published models and models of the hub. Register it with an agent as the ' +
    'command "minimind mcp"; it ends with its input.';
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --root ~/models --offline',
  ];

  // Standard output carries the protocol, so there is no answer with a format.
  static override baseFlags = {} as typeof baseFlags;
  static override flags = {
    root: Flags.string({
      helpValue: 'DIR',
      description: 'folder with the files that can be named [default: this folder]',
    }),
    offline,
  };

  async run() {
    const { flags } = await this.parse(Mcp);
    const { serve } = await import('../cli/mcp/serve.js');
    await serve({
      root: realFolder(flags.root ?? '.'),
      version: this.config.version,
      isOffline: flags.offline,
    });
  }
}

function realFolder(folder: string): string {
  try {
    const real = fs.realpathSync.native(folder);
    if (fs.statSync(real).isDirectory()) return real;
  } catch {
    // The error below names it.
  }
  throw usageError(
    `--root: expected a folder, found none at ${folder}`,
    'name a folder that exists',
  );
}
