/** Opens addresses in the browser of the user. */
import { spawn } from 'node:child_process';

type Environment = Readonly<Record<string, string | undefined>>;

/** Program and arguments that open an address; undefined on a machine without a screen. */
export function browserCommand(
  url: string,
  platform: NodeJS.Platform,
  env: Environment,
): readonly [program: string, ...words: string[]] | undefined {
  if (platform === 'darwin') return ['open', url];
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler', url];
  return env.DISPLAY || env.WAYLAND_DISPLAY ? ['xdg-open', url] : undefined;
}

/** Opens an address. The user can also open it, so a missing browser is not an error. */
export function openBrowser(url: string): void {
  const [program, ...words] = browserCommand(url, process.platform, process.env) ?? [];
  if (program === undefined) return;
  const child = spawn(program, words, { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
}
