/** The words of a command line, each flag with its value. */

/** An argument, or a flag with its value. */
export interface Word {
  /** Undefined for an argument. */
  readonly flag?: string;
  readonly texts: readonly string[];
}

/** Flags of a command, by their names. */
export type DeclaredFlags = Readonly<
  Record<string, { readonly type: string; readonly char?: string }>
>;

/** Words of a command line after `readCommandLine`, which spells flags in full, except short ones. */
export function wordsOfLine(argv: readonly string[], declared: DeclaredFlags): Word[] {
  const words: Word[] = [];
  for (let at = 0; at < argv.length; at++) {
    const text = argv[at] ?? '';
    if (text === '--') return [...words, ...argv.slice(at + 1).map((each) => ({ texts: [each] }))];
    const flag = flagOf(text, declared);
    if (flag === undefined) words.push({ texts: [text] });
    else if (declared[flag]?.type === 'boolean' || hasValue(text)) {
      words.push({ flag, texts: [text] });
    } else words.push({ flag, texts: [text, argv[++at] ?? ''] });
  }
  return words;
}

function flagOf(text: string, declared: DeclaredFlags): string | undefined {
  if (text.startsWith('--')) return text.slice(2).split('=', 1)[0];
  if (!/^-[a-z]/i.test(text)) return undefined;
  return Object.keys(declared).find((name) => declared[name]?.char === text[1]);
}

/** Whether a flag includes its value: `--name=value`, or `-oFILE`. */
const hasValue = (text: string): boolean =>
  text.startsWith('--') ? text.includes('=') : text.length > 2;
