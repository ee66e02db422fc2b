/** Characters of a text: their scripts, and characters that indicate damage. */

/** Scripts with their ranges of code points, from Unicode's Scripts.txt; whole blocks where these suffice. */
const SCRIPTS = {
  Latin: [
    [0x41, 0x5a],
    [0x61, 0x7a],
    [0xaa, 0xaa],
    [0xba, 0xba],
    [0xc0, 0xd6],
    [0xd8, 0xf6],
    [0xf8, 0x2b8],
    [0x1e00, 0x1eff],
    [0x2c60, 0x2c7f],
    [0xa722, 0xa7ff],
    [0xff21, 0xff3a],
    [0xff41, 0xff5a],
  ],
  Han: [
    [0x2e80, 0x2fd5],
    [0x3005, 0x3007],
    [0x3021, 0x3029],
    [0x3400, 0x4dbf],
    [0x4e00, 0x9fff],
    [0xf900, 0xfaff],
    [0x20000, 0x323af],
  ],
  Kana: [
    [0x3041, 0x309f],
    [0x30a1, 0x30ff],
    [0x31f0, 0x31ff],
    [0xff66, 0xff9d],
  ],
  Hangul: [
    [0x1100, 0x11ff],
    [0x3131, 0x318e],
    [0xa960, 0xa97c],
    [0xac00, 0xd7fb],
  ],
  Cyrillic: [
    [0x400, 0x52f],
    [0x1c80, 0x1c8a],
    [0x2de0, 0x2dff],
    [0xa640, 0xa69f],
  ],
  Greek: [
    [0x370, 0x3ff],
    [0x1f00, 0x1fff],
  ],
  Arabic: [
    [0x600, 0x6ff],
    [0x750, 0x77f],
    [0x8a0, 0x8ff],
    [0xfb50, 0xfdff],
    [0xfe70, 0xfefc],
  ],
  Hebrew: [
    [0x591, 0x5f4],
    [0xfb1d, 0xfb4f],
  ],
  Devanagari: [
    [0x900, 0x97f],
    [0xa8e0, 0xa8ff],
  ],
  Bengali: [[0x980, 0x9ff]],
  Tamil: [[0xb80, 0xbff]],
  Thai: [[0xe01, 0xe5b]],
  Emoji: [
    [0x2600, 0x27bf],
    [0x1f000, 0x1faff],
  ],
} as const satisfies Record<string, readonly (readonly [number, number])[]>;

/** `other` has letters of further scripts, `none` texts without letters. */
export type Script = keyof typeof SCRIPTS | 'Japanese' | 'other' | 'none';

const NAMES = Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[];
const OTHER = NAMES.length + 1;

/**
 * Number of the script of each code point up to U+FFFF, as its position in `NAMES` from 1; 0 for signs, digits and
 * spaces.
 */
const BASIC = new Uint8Array(0x10000);
for (let code = 0; code < BASIC.length; code++) {
  const isSurrogate = code >= 0xd800 && code <= 0xdfff;
  if (code > 0x7f && !isSurrogate && /\p{L}/u.test(String.fromCharCode(code))) BASIC[code] = OTHER;
}
for (const [index, name] of NAMES.entries()) {
  for (const [first, last] of SCRIPTS[name]) {
    if (first < BASIC.length) BASIC.fill(index + 1, first, last + 1);
  }
}

function scriptBeyondBasic(code: number): number {
  const index = NAMES.findIndex((name) =>
    SCRIPTS[name].some(([first, last]) => code >= first && code <= last),
  );
  return index < 0 ? OTHER : index + 1;
}

export interface CharacterCounts {
  /** Unicode code points. */
  readonly characters: number;
  /** C0 without tab, line feed, form feed and carriage return; DEL; C1. */
  readonly control: number;
  /** U+FFFD: an earlier program could not decode something. */
  readonly replacement: number;
  /** Half of a surrogate pair, from a wrong `\ud800` in JSON. */
  readonly surrogates: number;
  /** Script with most letters. */
  readonly script: Script;
}

const counts = new Float64Array(OTHER + 1);

const addScript = (script: number) => {
  counts[script] = (counts[script] as number) + 1;
};

/** Smallest share of kana among ideographs of a Japanese text. */
const JAPANESE = 0.1;

export function countCharacters(text: string): CharacterCounts {
  let [control, replacement, surrogates, pairs] = [0, 0, 0, 0];
  counts.fill(0);
  const { length } = text;
  for (let at = 0; at < length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20) {
      if (unit !== 9 && unit !== 10 && unit !== 12 && unit !== 13) control++;
    } else if (unit >= 0xd800 && unit <= 0xdfff) {
      const code = text.codePointAt(at) ?? 0;
      if (code > 0xffff) {
        addScript(scriptBeyondBasic(code));
        pairs++;
        at++;
      } else surrogates++;
    } else {
      if (unit >= 0x7f && unit <= 0x9f) control++;
      else if (unit === 0xfffd) replacement++;
      addScript(BASIC[unit] ?? 0);
    }
  }
  return { characters: length - pairs, control, replacement, surrogates, script: mainScript() };
}

function mainScript(): Script {
  const [han, kana] = [
    counts[NAMES.indexOf('Han') + 1] ?? 0,
    counts[NAMES.indexOf('Kana') + 1] ?? 0,
  ];
  let best = 0;
  for (let index = 1; index <= OTHER; index++) {
    if ((counts[index] ?? 0) > (best === 0 ? 0 : (counts[best] ?? 0))) best = index;
  }
  if (best === 0) return 'none';
  if (best === OTHER) return 'other';
  const name = NAMES[best - 1] ?? 'Latin';
  const isJapanese = kana > JAPANESE * (han + kana) && (name === 'Han' || name === 'Kana');
  return isJapanese ? 'Japanese' : name;
}
