// Fills in what package.json says of the place that publishes it, from the URL of the repository:
//   npm run publisher -- https://github.com/OWNER/NAME 'Name of the author'
// in the lines of the documentation that name the repository, in the addresses of the JSON Schemas, and in the entry for the
// catalog of SchemaStore. Before `npm publish`, --check refuses a package without these fields.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FILE = fileURLToPath(new URL('../package.json', import.meta.url));
const SCHEMAS = new URL('../docs/schemas/', import.meta.url);
const CATALOG = fileURLToPath(new URL('../.github/schemastore.json', import.meta.url));

/** Fields of package.json that depend on who publishes it. */
const FIELDS = ['author', 'homepage', 'repository', 'bugs'];

/** Pages with lines to paste that name the repository. */
const PAGES = ['README.md', 'README.zh-CN.md', 'docs/continuous-integration.md'];

const USAGE = "npm run publisher -- https://github.com/OWNER/NAME 'Name of the author'";

/** The manifest with the fields, after its licence. */
export function withPublisher(manifest, url, author) {
  const page = repositoryPage(url);
  const fields = {
    author,
    homepage: `${page}#readme`,
    repository: { type: 'git', url: `git+${page}.git` },
    bugs: `${page}/issues`,
  };
  const others = Object.entries(manifest).filter(([name]) => !FIELDS.includes(name));
  const after = others.findIndex(([name]) => name === 'license') + 1;
  return Object.fromEntries(others.toSpliced(after, 0, ...Object.entries(fields)));
}

/** Fields that are missing. */
export const missingFields = (manifest) => FIELDS.filter((name) => !manifest[name]);

/** The text of a page with the repository in place of OWNER/minimind. */
export const withRepository = (text, url) => {
  const page = repositoryPage(url);
  return text
    .replaceAll('https://github.com/OWNER/minimind', page)
    .replaceAll('OWNER/minimind@', `${page.split('/').slice(-2).join('/')}@`);
};

/** Where the JSON Schemas of a package are found: in its repository. Without one, their ids are relative. */
export const schemaFolder = ({ repository }) =>
  repository ? `${repositoryPage(repository.url)}/raw/HEAD/docs/schemas/` : '';

/** The text of a JSON Schema with its id in a folder. */
export const withSchemaId = (text, folder) =>
  text.replace(/("\$id": ")(?:[^"]*\/)?(?=[\w-]+\.schema\.json")/, (_, start) => start + folder);

/** The entry for the catalog of SchemaStore with the address of the JSON Schema in a folder. */
export const withSchemaAddress = (entry, folder) => ({
  ...entry,
  url: `${folder}${entry.url.split('/').at(-1)}`,
});

/** The page of a repository: an https URL with an owner and a name. */
function repositoryPage(url) {
  const page = url.replace(/^git\+/, '').replace(/\/?(\.git)?$/, '');
  if (/^https:\/\/[\w.-]+\/[\w.-]+\/[\w.-]+$/.test(page)) return page;
  throw new Error(`expected https://HOST/OWNER/NAME, found ${url}`);
}

function main([first, author, ...rest]) {
  const manifest = JSON.parse(readFileSync(FILE, 'utf8'));
  if (first === '--check') {
    const missing = missingFields(manifest);
    if (missing.length === 0) return;
    throw new Error(`package.json has no ${missing.join(', ')}. Fill them in: ${USAGE}`);
  }
  if (!first || !author || rest.length > 0) throw new Error(`Usage: ${USAGE}`);
  const filled = withPublisher(manifest, first, author);
  writeFileSync(FILE, `${JSON.stringify(filled, null, 2)}\n`);
  for (const page of PAGES) {
    const file = new URL(`../${page}`, import.meta.url);
    writeFileSync(file, withRepository(readFileSync(file, 'utf8'), first));
  }
  for (const name of readdirSync(SCHEMAS)) {
    const file = new URL(name, SCHEMAS);
    writeFileSync(file, withSchemaId(readFileSync(file, 'utf8'), schemaFolder(filled)));
  }
  const entry = withSchemaAddress(JSON.parse(readFileSync(CATALOG, 'utf8')), schemaFolder(filled));
  writeFileSync(CATALOG, `${JSON.stringify(entry, null, 2)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 2;
  }
}
