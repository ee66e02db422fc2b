/** The commands as they are in `src`, for mutants, which `dist` does not contain. */
import { Plugin } from '@oclif/core/config';
import { inPackage, ROOT } from '../fixtures.js';

/** The last argument of `runCommandLine`. The manifest of the build has the flags of the commands. */
export async function sourceCommands(): Promise<object> {
  const plugin = new Plugin({ isRoot: true, root: ROOT });
  await plugin.load();
  plugin.findCommand = async (id: string) => {
    const file = inPackage('src/commands', `${id.replaceAll(':', '/')}.ts`);
    const { default: command } = await import(/* @vite-ignore */ file);
    command.id = id;
    command.plugin = plugin;
    return command;
  };
  return { plugins: new Map([[plugin.name, plugin]]) };
}
