export const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const;
export type Shell = (typeof SHELLS)[number];

/**
 * A completion script.
 * @title minimind completion --json
 */
export interface CompletionResult {
  readonly schema: 'minimind/completion@1';
  /** Shell of the script. */
  readonly shell: Shell;
  /** The script itself. */
  readonly script: string;
}

export interface CompletedFlag {
  readonly name: string;
  /** The short form, one letter. */
  readonly char?: string | undefined;
  readonly summary: string;
  readonly takesValue: boolean;
  readonly isRepeatable: boolean;
  /** Values to offer; without them, any file. */
  readonly options?: readonly string[] | undefined;
  /** Whether files are valid too. */
  readonly isOpen?: boolean | undefined;
}

export interface CompletedCommand {
  /** One word, or a topic and its command. */
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletedFlag[];
  /** Allowed argument: one of these words, a file, or none. */
  readonly argument: readonly string[] | 'file' | 'none';
  /** Words to offer in addition to files. */
  readonly names?: readonly string[] | undefined;
  /** Other words for the command. They are offered once their beginning is typed. */
  readonly aliases?: readonly string[] | undefined;
}

const HELP: CompletedFlag = {
  name: 'help',
  summary: 'show help',
  takesValue: false,
  isRepeatable: false,
};
const VERSION: CompletedFlag = { ...HELP, name: 'version', summary: 'show the version' };

/**
 * The script that completes the command line of the program `bin` in `shell`.
 * @param bin Letters, digits, `-` and `_`.
 */
export function completionScript(
  shell: Shell,
  bin: string,
  commands: readonly CompletedCommand[],
): string {
  const topics = topicsIn(commands);
  const own = [...commands, ...topics].map((command) => ({
    ...command,
    flags: [...command.flags, HELP],
  }));
  const names = new Set(topics.map(({ name }) => name));
  return { bash, zsh, fish, powershell }[shell](bin, own, names);
}

/** The first word of a name that has two. */
const topicOf = ({ name }: CompletedCommand): string | undefined =>
  name.includes(' ') ? name.slice(0, name.indexOf(' ')) : undefined;

const lastWord = ({ name }: CompletedCommand): string => name.slice(name.indexOf(' ') + 1);

/** Topics as commands, whose arguments are the commands in them. */
function topicsIn(commands: readonly CompletedCommand[]): CompletedCommand[] {
  const topics = new Set(commands.flatMap((command) => topicOf(command) ?? []));
  return [...topics].map((name) => {
    const words = commands.filter((command) => topicOf(command) === name).map(lastWord);
    return { name, summary: words.join(', '), flags: [], argument: words };
  });
}

/** One line, without characters that are special to a terminal or a script. */
const oneLine = (text: string) =>
  text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/ +/g, ' ')
    .trim();

/** Single quotes, for bash and zsh. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** Escapes text that a shell expands again after the quotes: a backslash before each special character. */
const literal = (word: string) => oneLine(word).replace(/[^\w.,+@%/-]/gu, '\\$&');

/** Possible first words: commands of one word, and topics. */
const firstWords = (commands: readonly CompletedCommand[]) =>
  commands
    .filter((command) => topicOf(command) === undefined)
    .map(({ name }) => name)
    .sort();

/** Commands with other words for them. */
const aliased = (commands: readonly CompletedCommand[]) =>
  commands.flatMap(({ name, aliases = [] }) => (aliases.length > 0 ? [{ name, aliases }] : []));

const allAliases = (commands: readonly CompletedCommand[]) =>
  aliased(commands)
    .flatMap(({ aliases }) => aliases)
    .sort();

const spellings = ({ name, char }: CompletedFlag) => [`--${name}`, ...(char ? [`-${char}`] : [])];

function bash(
  bin: string,
  commands: readonly CompletedCommand[],
  topics: ReadonlySet<string>,
): string {
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
        .map((flag) => {
          const files = flag.isOpen ? `; _${bin}_files` : '';
          return `    ${patterns(name, [flag])}) ${offer(flag.options ?? [])}${files}; return ;;`;
        }),
      ...(free ? [`    ${free}) return ;;`] : []),
    ];
  });
  const rest = commands.flatMap(({ name, flags, argument, names = [] }) => [
    `    ${quoted(`${name} -`)}) ${offer(flags.flatMap(spellings))} ;;`,
    ...(typeof argument === 'string' ? [] : [`    ${quoted(`${name} `)}) ${offer(argument)} ;;`]),
    ...(names.length > 0 ? [`    ${quoted(`${name} `)}) ${offer(names)}; _${bin}_files ;;`] : []),
  ]);
  return `# Completion of ${bin} for bash.
# Offers the words that begin as $word does. Without any, bash completes file names.
_${bin}_offer() {
  local each
  for each in "$@"; do
    if [[ $each == "$word"* ]]; then COMPREPLY+=("$each"); fi
  done
  # A key of a config still needs its value.
  if [[ \${COMPREPLY[*]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
_${bin}_files() {
  local each
  while IFS= read -r each; do COMPREPLY+=("$each"); done < <(compgen -f -- "$word")
  compopt -o filenames 2>/dev/null
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
    ${offer([...firstWords(commands), ...[HELP, VERSION].flatMap(spellings)])}
    if [[ -n $word ]]; then ${offer(allAliases(commands))}; fi
    return
  fi
  case "$command" in
${aliased(commands)
  .map(({ name, aliases }) => `    ${aliases.map(quoted).join('|')}) command=${quoted(name)} ;;`)
  .join('\n')}
  esac
${[...topics].map((topic) => `  if [[ $command == ${quoted(topic)} ]] && (( COMP_CWORD > 2 )); then command="$command \${COMP_WORDS[2]}"; fi\n`).join('')}  case "$command $before" in
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

function zsh(
  bin: string,
  commands: readonly CompletedCommand[],
  topics: ReadonlySet<string>,
): string {
  /** Escapes a part of a specification, in which brackets and colons are special. */
  const part = (text: string) => oneLine(text).replace(/[\\[\]:]/g, '\\$&');
  const choice = (options: readonly string[]) => `(${options.map(literal).join(' ')})`;
  const withFiles = (words: readonly string[]) =>
    `{compadd -- ${words.map(literal).join(' ')}; _files}`;
  const flagSpec = (flag: CompletedFlag) => {
    const names = spellings(flag);
    const repeat = flag.isRepeatable ? '*' : names.length > 1 ? `(${names.join(' ')})` : '';
    const ends = names.map((name) =>
      flag.takesValue ? `${name}${name.startsWith('--') ? '=' : '+'}` : name,
    );
    const value = !flag.options
      ? '_files'
      : flag.isOpen
        ? withFiles(flag.options)
        : choice(flag.options);
    const about = `[${part(flag.summary)}]${flag.takesValue ? `:${part(flag.name)}:${value}` : ''}`;
    return ends.map((end) => quoted(`${repeat}${end}${about}`));
  };
  const cases = commands.map(({ name, flags, argument, names = [] }) => {
    const files = names.length > 0 ? withFiles(names) : '_files';
    const rest =
      argument === 'none'
        ? []
        : [quoted(`*:argument:${argument === 'file' ? files : choice(argument)}`)];
    const specs = [...flags.flatMap(flagSpec), ...rest];
    return `    ${quoted(name)})
      _arguments -s \\
${specs.map((spec) => `        ${spec}`).join(' \\\n')} ;;`;
  });
  const described = commands
    .filter((command) => topicOf(command) === undefined)
    .map(({ name, summary }) => quoted(`${name.replaceAll(':', '\\:')}:${oneLine(summary)}`));
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
      if [[ -n $words[2] ]]; then compadd -- ${allAliases(commands).map(literal).join(' ')}; fi
    fi
    return
  fi
  local command=$words[2]
  case $command in
${aliased(commands)
  .map(({ name, aliases }) => `    ${aliases.map(quoted).join('|')}) command=${quoted(name)} ;;`)
  .join('\n')}
  esac
  shift words
  (( CURRENT-- ))
${[...topics].map((topic) => `  if [[ $command == ${quoted(topic)} ]] && (( CURRENT > 2 )); then\n    command="$command $words[2]"\n    shift words\n    (( CURRENT-- ))\n  fi\n`).join('')}  case $command in
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

function fish(
  bin: string,
  commands: readonly CompletedCommand[],
  topics: ReadonlySet<string>,
): string {
  const text = (value: string) => `'${oneLine(value).replace(/[\\']/g, '\\$&')}'`;
  /** Words of a list. The shell expands it at use, so the words are made literal before they are quoted. */
  const list = (options: readonly string[]) =>
    `'${options.map(literal).join(' ').replace(/[\\']/g, '\\$&')}'`;
  const flagLine = (condition: string, flag: CompletedFlag) =>
    [
      `complete -c ${bin} -n ${condition} -l ${flag.name}`,
      ...(flag.char ? [`-s ${flag.char}`] : []),
      ...(flag.takesValue && flag.options
        ? [`${flag.isOpen ? '-r -F' : '-x'} -a ${list(flag.options)}`]
        : []),
      ...(flag.takesValue && !flag.options ? ['-r -F'] : []),
      `-d ${text(flag.summary)}`,
    ].join(' ');
  const lines = commands.flatMap((command) => {
    const { name, summary, flags, argument, names = [], aliases = [] } = command;
    const topic = topicOf(command);
    const last = lastWord(command);
    // The last word of a command may also be a command of its own.
    const others = commands.flatMap((each) => (lastWord(each) === name && topicOf(each)) || []);
    const words = topics.has(name) && Array.isArray(argument) ? argument : others;
    const seen = '__fish_seen_subcommand_from';
    const condition = [
      `'${seen} ${[topic ?? name, ...aliases].join(' ')}`,
      ...(topic === undefined ? [] : [`${seen} ${last}`]),
      ...(words.length > 0 ? [`not ${seen} ${words.join(' ')}`] : []),
    ]
      .join('; and ')
      .concat("'");
    const offered = names.length > 0 ? `-F -a ${list(names)}` : '-F';
    const argumentLine = argument === 'file' ? [offered] : [`-a ${list([...argument])}`];
    return [
      ...(topic === undefined
        ? [`complete -c ${bin} -n __fish_use_subcommand -a ${name} -d ${text(summary)}`]
        : []),
      ...(aliases.length > 0
        ? [
            `complete -c ${bin} -n '__fish_use_subcommand; and string length -q -- (commandline -ct)' -a ${list(aliases)} -d ${text(name)}`,
          ]
        : []),
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

function powershell(
  bin: string,
  commands: readonly CompletedCommand[],
  topics: ReadonlySet<string>,
): string {
  const text = (word: string) => `'${oneLine(word).replaceAll("'", "''")}'`;
  const list = (words: readonly string[]) => `@(${words.map(text).join(', ')})`;
  const entry = (key: string, words: readonly string[]) => `  ${text(key)} = ${list(words)}`;
  const flags = commands.map(({ name, flags: own }) => entry(name, own.flatMap(spellings)));
  const values = commands.flatMap(({ name, flags: own }) =>
    own.flatMap((flag) =>
      flag.options
        ? spellings(flag).map((spelling) => entry(`${name} ${spelling}`, flag.options ?? []))
        : [],
    ),
  );
  const words = commands.flatMap(({ name, argument, names = [] }) => {
    const offered = typeof argument === 'string' ? names : argument;
    return offered.length > 0 ? [entry(name, offered)] : [];
  });
  return `# Completion of ${bin} for PowerShell. Without an offer, PowerShell completes file names.
$${bin}Topics = ${list([...topics])}
$${bin}First = ${list([...firstWords(commands), ...[HELP, VERSION].flatMap(spellings)])}
$${bin}Aliases = @{
${aliased(commands)
  .flatMap(({ name, aliases }) => aliases.map((each) => `  ${text(each)} = ${text(name)}`))
  .join('\n')}
}
$${bin}Flags = @{
${flags.join('\n')}
}
$${bin}Values = @{
${values.join('\n')}
}
$${bin}Words = @{
${words.join('\n')}
}
Register-ArgumentCompleter -Native -CommandName ${bin} -ScriptBlock {
  param($word, $line, $cursor)
  $given = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.ToString() })
  $offered = $${bin}First
  if ($word -ne '') { $offered = $offered + @($${bin}Aliases.Keys | Sort-Object) }
  if ($given.Count -gt 1) {
    $command = $given[1]
    if ($${bin}Aliases.ContainsKey($command)) { $command = $${bin}Aliases[$command] }
    if ($${bin}Topics -contains $command -and $given.Count -gt 2) { $command = "$command $($given[2])" }
    $before = "$command $($given[-1])"
    if ($${bin}Values.ContainsKey($before)) { $offered = $${bin}Values[$before] }
    elseif ($word -like '-*') { $offered = $${bin}Flags[$command] }
    else { $offered = $${bin}Words[$command] }
  }
  $offered | Where-Object { $_ -like "$word*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
`;
}
