// Writes the pages of the site into pages/: those of docs/, one for each command, and the API. It needs a build of minimind.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandPages } from './command-pages.js';
import { docPages } from './doc-pages.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const inSite = (name) => path.join(HERE, name);
const { repository } = JSON.parse(readFileSync(inSite('../../package.json'), 'utf8'));
const address = (repository?.url ?? 'https://github.com/OWNER/minimind').replace(
  /^git\+|\.git$/g,
  '',
);

function write(name, text) {
  const file = inSite(`pages/${name}`);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Entries of the package by the file that TypeDoc writes. */
const ENTRIES = {
  'index-1': 'minimind',
  browser: 'minimind-browser',
  'model/modules': 'minimind-modules',
  'base/random': 'minimind-random',
};

function apiPages() {
  rmSync(inSite('.api'), { recursive: true, force: true });
  execFileSync(process.execPath, [inSite('node_modules/typedoc/bin/typedoc')], {
    cwd: HERE,
    stdio: 'inherit',
  });
  const links = Object.entries(ENTRIES).map(([file, name]) => {
    const title = name.replace('-', '/');
    const page = readFileSync(inSite(`.api/${file}.md`), 'utf8')
      .replace(/^# .*$/m, `# ${title}`)
      .replaceAll(/\]\(([^()#\s]+)\.md/g, (whole, target) => {
        const full = path.posix.join(path.posix.dirname(file), target);
        return full in ENTRIES ? `](${ENTRIES[full]}.md` : whole;
      });
    write(`api/${name}.md`, page);
    return `- [\`${title}\`](${name}.md)`;
  });
  const known = readdirSync(inSite('.api'), { recursive: true }).filter((name) =>
    name.endsWith('.md'),
  );
  if (known.length !== links.length + 1) throw new Error(`unknown entries: ${known.join(', ')}`);
  write(
    'api/index.md',
    `# API\n\nThe entries of the package. [Library](../library.md) has examples.\n\n${links.join('\n')}\n`,
  );
}

rmSync(inSite('pages'), { recursive: true, force: true });
const { files, groups } = commandPages();
for (const [name, text] of Object.entries({ ...docPages(inSite('..'), address), ...files })) {
  write(name, text);
}
cpSync(inSite('../gallery'), inSite('pages/gallery'), { recursive: true });
apiPages();
write('commands.json', JSON.stringify(groups));
