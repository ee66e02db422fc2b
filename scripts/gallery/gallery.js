// Writes docs/gallery/ and docs/gallery.md: pictures of answers, from what the built program writes. With --check it
// compares only.
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { PICTURES } from './pictures.js';
import { reportPicture } from './report-picture.js';

const ROOT = new URL('../../', import.meta.url);
const inRoot = (name) => fileURLToPath(new URL(name, ROOT));
const { runCommandLine } = await import(new URL('dist/cli/main.js', ROOT));

const REPORT = ['profile', 'qwen3:8b'];

/** File that a command writes with -o, in a folder that has the files of the commands. */
async function written(args, name) {
  process.exitCode = undefined;
  await runCommandLine([...args, '-o', name, '--force', '--quiet'], ROOT);
  if (process.exitCode)
    throw new Error(`minimind ${args.join(' ')} ended with ${process.exitCode}`);
  return readFileSync(name, 'utf8');
}

/** The files of the gallery by their paths in the project. */
async function gallery() {
  const files = {};
  for (const { name, args, file, before } of PICTURES) {
    if (file) writeFileSync(...file);
    if (before) await written(before, `${name}.txt`);
    files[`docs/gallery/${name}.svg`] = `${(await written(args, `${name}.svg`)).trimEnd()}\n`;
  }
  const [style] = /<style>.*?<\/style>/s.exec(Object.values(files)[0]);
  const page = await written(REPORT, 'report.html');
  const command = `minimind ${REPORT.join(' ')} -o report.html`;
  files['docs/gallery/report.svg'] = `${reportPicture(page, command, style)}\n`;
  files['docs/gallery.md'] = pageText();
  return files;
}

const pageText = () =>
  [
    '# Gallery',
    'Each picture is the answer of a command with `-o picture.svg`. `npm run docs:gallery` writes them. A page of',
    'a report, `-o report.html`, has all pictures of an answer, with their values as tables.',
    '',
    ...PICTURES.flatMap(({ section, name, title, args, file, before }) => [
      ...(section ? [`## ${section}\n`] : []),
      `### ${title}\n`,
      '```sh',
      ...(file ? [`echo '${file[1]}' > ${file[0]}`] : []),
      ...[before, args].filter(Boolean).map((words) => `minimind ${words.map(quoted).join(' ')}`),
      '```\n',
      `![${title}](gallery/${name}.svg)\n`,
    ]),
  ]
    .join('\n')
    .replace('# Gallery\n', '# Gallery\n\n')
    .trimEnd()
    .concat('\n');

const quoted = (word) => (/[^\w./:,=-]/.test(word) ? `'${word}'` : word);

function fail(message) {
  process.stderr.write(`${message}: run npm run docs:gallery\n`);
  process.exitCode = 1;
}

const start = process.cwd();
const folder = mkdtempSync(path.join(tmpdir(), 'minimind-gallery-'));
let files;
try {
  symlinkSync(inRoot('fixtures'), path.join(folder, 'fixtures'), 'junction');
  process.chdir(folder);
  files = await gallery();
} finally {
  process.chdir(start);
  rmSync(folder, { recursive: true });
}

process.exitCode = 0;
const kept = readdirSync(inRoot('docs/gallery')).map((name) => `docs/gallery/${name}`);
for (const file of kept) {
  if (file in files) continue;
  if (process.argv.includes('--check')) fail(`${file} is not in the gallery`);
  else rmSync(inRoot(file));
}
for (const [file, text] of Object.entries(files)) {
  if (!process.argv.includes('--check')) writeFileSync(inRoot(file), text);
  else if (!kept.includes(file) && file !== 'docs/gallery.md') fail(`${file} is missing`);
  else if (readFileSync(inRoot(file), 'utf8') !== text) fail(`${file} is not up to date`);
}
