import { Chalk, type ChalkInstance } from 'chalk';
import type { RenderOptions, Tone } from '../kit/report.js';

/** Colours for a terminal of this level; level 0 leaves all text as it is. */
export function colours(level: RenderOptions['colourLevel']): ChalkInstance {
  return new Chalk({ level });
}

const TONES = {
  plain: (_, text) => text,
  dim: (chalk, text) => chalk.dim(text),
  strong: (chalk, text) => chalk.bold(text),
  good: (chalk, text) => chalk.green(text),
  bad: (chalk, text) => chalk.red(text),
  warning: (chalk, text) => chalk.yellow(text),
  hue1: (chalk, text) => chalk.cyan(text),
  hue2: (chalk, text) => chalk.magenta(text),
  hue3: (chalk, text) => chalk.yellow(text),
  hue4: (chalk, text) => chalk.blueBright(text),
  hue5: (chalk, text) => chalk.green(text),
} as const satisfies Record<Tone, (chalk: ChalkInstance, text: string) => string>;

/** `text` in the colour of a tone. */
export function tinted(chalk: ChalkInstance, tone: Tone, text: string): string {
  return TONES[tone](chalk, text);
}
