import { Chalk, type ChalkInstance } from 'chalk';
import type { RenderOptions } from '../kit/report.js';

/** Colours for a terminal of this level; level 0 leaves text unchanged. A help needs them without any table. */
export function colours(level: RenderOptions['colourLevel']): ChalkInstance {
  return new Chalk({ level });
}
