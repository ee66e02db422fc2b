/** Styles of text and colours of lines, by their meaning. */

/** Style of a text; a colour on a terminal, no effect elsewhere. */
export type Tone = 'plain' | 'dim' | 'strong' | 'good' | 'bad' | 'warning' | Hue;

/** Colour that distinguishes lines of a plot. */
export type Hue = 'hue1' | 'hue2' | 'hue3' | 'hue4' | 'hue5';

/** Colours of lines, one after the other. */
const HUES = ['hue1', 'hue2', 'hue3', 'hue4', 'hue5'] as const satisfies readonly Hue[];

/** The colour of line number `index`. */
export const hueOf = (index: number): Hue => HUES[index % HUES.length] ?? 'hue1';
