// Writes a man page for the program, each topic and each command into dist/man, from oclif.manifest.json and the texts of
// --help. The build runs it; `man` of package.json names the pages, so that a global installation links them.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { register } from 'tsx/esm/api';

register();
const { COMMAND_GROUPS, helpContents } = await import('../src/cli/help.ts');

const root = new URL('..', import.meta.url);
const readJson = (name) => JSON.parse(readFileSync(new URL(name, root), 'utf8'));
const { version, oclif } = readJson('package.json');
const commands = Object.values(readJson('oclif.manifest.json').commands);

/** Characters that roff reads as commands, or prints as typographic ones that cannot be pasted. */
const ESCAPES = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
  '"': '\\(dq',
};

/** A line that roff prints as it is. A dot at its start would be a command. */
const plain = (line) =>
  line.replace(/[\\'`^~"-]/g, (character) => ESCAPES[character]).replace(/^\./, '\\&.');

const bold = (line) => `\\fB${plain(line)}\\fR`;

/** Empty lines separate paragraphs, and each other line keeps its own line. */
const lines = (text) =>
  text
    .split(/\n{2,}/)
    .flatMap((paragraph) => [
      '.PP',
      ...paragraph
        .split('\n')
        .flatMap((line) => ['.br', plain(line.trim())])
        .slice(1),
    ])
    .slice(1);
const tagged = (rows) => rows.flatMap(([name, text]) => ['.TP', bold(name), ...lines(text)]);
const section = (title, body) => (body.length > 0 ? [`.SH ${title}`, ...body] : []);
const pageName = (id) => ['minimind', ...(id === '' ? [] : id.split(':'))].join('-');
const seeAlso = (ids) =>
  section('SEE ALSO', [
    ids
      .sort()
      .map((id) => `${bold(pageName(id))}(1)`)
      .join(', '),
  ]);

const EXIT_CODES = [
  ['0', 'done'],
  ['1', 'a check failed'],
  ['2', 'the input is wrong: flags, a config, a refused file'],
  ['3', 'the operating system or a device failed'],
  ['70', 'a bug in minimind'],
  ['130', 'interrupted'],
];

/** A page has no date: the same sources make the same pages. */
function page(id, summary, body) {
  const name = pageName(id);
  const head = `.TH ${plain(name.toUpperCase())} 1 "" "minimind ${version}" "User Commands"`;
  const title = `${plain(name)} \\- ${plain(summary.replace(/\.$/, ''))}`;
  return [`${name}.1`, `${[head, ...section('NAME', [title]), ...body].join('\n')}\n`];
}

function commandPage(command) {
  const { name, summary, usage, examples, args, flags, description } = helpContents(
    'minimind',
    command,
  );
  const rest = usage.slice(`minimind ${name}`.length);
  return page(command.id, summary, [
    ...section('SYNOPSIS', [`${bold(`minimind ${name}`)}${plain(rest)}`]),
    ...section('DESCRIPTION', lines(description ?? summary)),
    ...section('ARGUMENTS', tagged(args)),
    ...section(
      'OPTIONS',
      flags.flatMap(([title, rows]) => [
        ...(flags.length > 1 ? [`.SS ${plain(title)}`] : []),
        ...tagged(rows),
      ]),
    ),
    ...section('EXAMPLES', ['.nf', ...examples.map((line) => plain(`$ ${line}`)), '.fi']),
    ...section('EXIT STATUS', tagged(EXIT_CODES)),
    ...seeAlso(['', ...(command.id.includes(':') ? [command.id.split(':')[0]] : [])]),
  ]);
}

const topics = Object.entries(oclif.topics).map(([id, { description }]) => ({
  id,
  summary: description,
}));
const synopsis = (words) => section('SYNOPSIS', [`${bold(words)} ${plain('COMMAND [flags]')}`]);

function topicPage({ id, summary }) {
  const own = commands.filter((command) => command.id.startsWith(`${id}:`));
  return page(id, summary, [
    ...synopsis(`minimind ${id}`),
    ...section('COMMANDS', tagged(own.map((each) => [each.id.replace(':', ' '), each.summary]))),
    ...seeAlso(['', ...own.map((each) => each.id)]),
  ]);
}

function programPage() {
  const all = [...commands, ...topics];
  const summaryOf = (id) => all.find((each) => each.id === id)?.summary ?? '';
  return page('', 'Design, check, run and convert language models.', [
    ...synopsis('minimind'),
    ...section(
      'COMMANDS',
      Object.entries(COMMAND_GROUPS).flatMap(([title, ids]) => [
        `.SS ${title}`,
        ...tagged(ids.map((id) => [id, summaryOf(id)])),
      ]),
    ),
    ...section('EXIT STATUS', tagged(EXIT_CODES)),
    ...seeAlso(all.map(({ id }) => id)),
  ]);
}

const folder = new URL('dist/man/', root);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const [file, text] of [
  programPage(),
  ...topics.map(topicPage),
  ...commands.map(commandPage),
]) {
  writeFileSync(new URL(file, folder), text);
}
