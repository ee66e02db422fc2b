/** Completion scripts for shells, made from what the commands say of themselves. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export interface CompletedFlag {
  readonly name: string;
  /** The short form, one letter. */
  readonly char?: string | undefined;
  readonly summary: string;
  readonly takesValue: boolean;
  readonly isRepeatable: boolean;
  /** The values to choose from; when there are none, any file may be meant. */
  readonly options?: readonly string[] | undefined;
}

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletedFlag[];
  /** What may stand as an argument: words to choose from, files, or nothing. */
  readonly argument: readonly string[] | 'file' | 'none';
}

const HELP: CompletedFlag = {
  name: 'help',
  summary: 'show help',
  takesValue: false,
  isRepeatable: false,
};
const VERSION: CompletedFlag = { ...HELP, name: 'version', summary: 'show the version' };

/**
 * The script that teaches `shell` to complete the command line of the program `bin`.
 * @param bin Letters, digits, `-` and `_`.
 */
export function completionScript(
  shell: Shell,
  bin: string,
  commands: readonly CompletedCommand[],
): string {
  const own = commands.map((command) => ({ ...command, flags: [...command.flags, HELP] }));
  return { bash, zsh, fish }[shell](bin, own);
}

/** One line, without what a terminal or a script could take for more than text. */
const oneLine = (text: string) =>
  text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/ +/g, ' ')
    .trim();

/** In single quotes, for bash and zsh. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** For the places that a shell expands once more, after the quotes: a backslash before each odd character. */
const literal = (word: string) => oneLine(word).replace(/[^\w.,+@%/-]/gu, '\\$&');

const spellings = ({ name, char }: CompletedFlag) => [`--${name}`, ...(char ? [`-${char}`] : [])];

function bash(bin: string, commands: readonly CompletedCommand[]): string {
  const offer = (words: readonly string[]) =>
    [`_${bin}_offer`, ...words.map((word) => quoted(oneLine(word)))].join(' ');
  const patterns = (command: string, flags: readonly CompletedFlag[]) =>
    flags
      .flatMap(spellings)
      .map((spelling) => quoted(`${command} ${spelling}`))
      .join('|');
  const values = commands.flatMap(({ name, flags }) => {
    const valued = flags.filter(({ takesValue }) => takesValue);
    const free = patterns(
      name,
      valued.filter(({ options }) => !options),
    );
    return [
      ...valued
        .filter(({ options }) => options)
        .map((flag) => `    ${patterns(name, [flag])}) ${offer(flag.options ?? [])}; return ;;`),
      ...(free ? [`    ${free}) return ;;`] : []),
    ];
  });
  const rest = commands.flatMap(({ name, flags, argument }) => [
    `    ${quoted(`${name} -`)}) ${offer(flags.flatMap(spellings))} ;;`,
    ...(typeof argument === 'string' ? [] : [`    ${quoted(`${name} `)}) ${offer(argument)} ;;`]),
  ]);
  return `# Completion of ${bin} for bash.
# Offers the words that begin as $word does. Without any, bash completes file names.
_${bin}_offer() {
  local each
  for each in "$@"; do
    if [[ $each == "$word"* ]]; then COMPREPLY+=("$each"); fi
  done
}
_${bin}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]}
  # bash takes "--flag=value" for three words.
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    ${offer([...commands.map(({ name }) => name), ...[HELP, VERSION].flatMap(spellings)])}
    return
  fi
  case "$command $before" in
${values.join('\n')}
  esac
  local kind=
  if [[ $word == -* ]]; then kind=-; fi
  case "$command $kind" in
${rest.join('\n')}
  esac
}
complete -o default -F _${bin} ${bin}
`;
}

function zsh(bin: string, commands: readonly CompletedCommand[]): string {
  /** For a part of a specification, where brackets and colons have a meaning. */
  const part = (text: string) => oneLine(text).replace(/[\\[\]:]/g, '\\$&');
  const choice = (options: readonly string[]) => `(${options.map(literal).join(' ')})`;
  const flagSpec = (flag: CompletedFlag) => {
    const names = spellings(flag);
    const repeat = flag.isRepeatable ? '*' : names.length > 1 ? `(${names.join(' ')})` : '';
    const ends = names.map((name) =>
      flag.takesValue ? `${name}${name.startsWith('--') ? '=' : '+'}` : name,
    );
    const value = flag.options ? choice(flag.options) : '_files';
    const about = `[${part(flag.summary)}]${flag.takesValue ? `:${part(flag.name)}:${value}` : ''}`;
    return ends.map((end) => quoted(`${repeat}${end}${about}`));
  };
  const cases = commands.map(({ name, flags, argument }) => {
    const rest =
      argument === 'none'
        ? []
        : [quoted(`*:argument:${argument === 'file' ? '_files' : choice(argument)}`)];
    const specs = [...flags.flatMap(flagSpec), ...rest];
    return `    ${name})
      _arguments -s \\
${specs.map((spec) => `        ${spec}`).join(' \\\n')} ;;`;
  });
  const described = commands.map(({ name, summary }) =>
    quoted(`${name.replaceAll(':', '\\:')}:${oneLine(summary)}`),
  );
  return `#compdef ${bin}
# Completion of ${bin} for zsh.
_${bin}() {
  local -a commands
  commands=(
${described.map((each) => `    ${each}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    if [[ $words[2] == -* ]]; then
      _arguments ${[HELP, VERSION].flatMap(flagSpec).join(' ')}
    else
      _describe command commands
    fi
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join('\n')}
  esac
}
if [[ $funcstack[1] == _${bin} ]]; then
  _${bin} "$@"
else
  compdef _${bin} ${bin}
fi
`;
}

function fish(bin: string, commands: readonly CompletedCommand[]): string {
  const text = (value: string) => `'${oneLine(value).replace(/[\\']/g, '\\$&')}'`;
  /** The list is expanded when it is used, so its words are made literal before they are quoted. */
  const list = (options: readonly string[]) =>
    `'${options.map(literal).join(' ').replace(/[\\']/g, '\\$&')}'`;
  const flagLine = (condition: string, flag: CompletedFlag) =>
    [
      `complete -c ${bin} -n ${condition} -l ${flag.name}`,
      ...(flag.char ? [`-s ${flag.char}`] : []),
      ...(flag.takesValue ? (flag.options ? [`-x -a ${list(flag.options)}`] : ['-r -F']) : []),
      `-d ${text(flag.summary)}`,
    ].join(' ');
  const lines = commands.flatMap(({ name, summary, flags, argument }) => {
    const condition = `'__fish_seen_subcommand_from ${name}'`;
    const argumentLine = argument === 'file' ? ['-F'] : [`-a ${list([...argument])}`];
    return [
      `complete -c ${bin} -n __fish_use_subcommand -a ${name} -d ${text(summary)}`,
      ...(argument === 'none' ? [] : [`complete -c ${bin} -n ${condition} ${argumentLine[0]}`]),
      ...flags.map((flag) => flagLine(condition, flag)),
    ];
  });
  return `# Completion of ${bin} for fish.
complete -c ${bin} -f
${[HELP, VERSION].map((flag) => flagLine('__fish_use_subcommand', flag)).join('\n')}
${lines.join('\n')}
`;
}
