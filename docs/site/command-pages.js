// The page of each command, from its help.
import { readFileSync } from 'node:fs';
import { register } from 'tsx/esm/api';

register();
const { COMMAND_GROUPS, helpContents } = await import('../../src/cli/help.ts');

const manifest = new URL('../../oclif.manifest.json', import.meta.url);

/** Text of a cell or a paragraph: no markup of Markdown, HTML or Vue. */
const escaped = (text) =>
  text
    .replace(/[&<>{}|*_`[\]\\]/g, (character) => `&#${character.charCodeAt(0)};`)
    .replaceAll(/\s+/g, ' ');

const table = (heads, rows) =>
  [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

const rowsOf = (entries) =>
  entries.map(([name, text]) => [`\`${name.replaceAll('|', '\\|')}\``, escaped(text)]);

const fileOf = (id) => `${id.replaceAll(':', '-')}.md`;

function commandPage(command) {
  const { name, summary, usage, examples, args, flags, description } = helpContents(
    'minimind',
    command,
  );
  const parts = [
    `# minimind ${name}`,
    escaped(summary),
    `\`\`\`sh\n${usage}\n\`\`\``,
    ...(description ? description.split(/\n{2,}/).map(escaped) : []),
    '## Examples',
    `\`\`\`sh\n${examples.join('\n')}\n\`\`\``,
    ...(args.length > 0 ? ['## Arguments', table(['argument', 'meaning'], rowsOf(args))] : []),
    ...flags.flatMap(([title, rows]) => [`## ${title}`, table(['flag', 'meaning'], rowsOf(rows))]),
  ];
  return `${parts.join('\n\n')}\n`;
}

/** Texts of the pages by their paths, and the groups of commands for the side bar. */
export function commandPages() {
  const commands = Object.values(JSON.parse(readFileSync(manifest, 'utf8')).commands);
  const files = Object.fromEntries(
    commands.map((command) => [`commands/${fileOf(command.id)}`, commandPage(command)]),
  );
  const groups = Object.entries(COMMAND_GROUPS).map(([title, ids]) => ({
    title,
    commands: commands
      .filter(({ id }) => ids.includes(id) || ids.includes(id.split(':')[0]))
      .map(({ id, summary }) => ({ id, name: id.replaceAll(':', ' '), summary })),
  }));
  files['commands/index.md'] = [
    '# Commands',
    ...groups.map(({ title, commands: own }) =>
      [
        `## ${title}`,
        table(
          ['command', 'purpose'],
          own.map(({ id, name, summary }) => [
            `[minimind ${name}](${fileOf(id)})`,
            escaped(summary),
          ]),
        ),
      ].join('\n\n'),
    ),
  ]
    .join('\n\n')
    .concat('\n');
  return { files, groups };
}
