// The packages in a bundle, and their licences, which a copy of the bundle has to carry.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** A package whose licence is the plain text of the Apache License 2.0, for packages that come without it. */
const APACHE = 'node_modules/long/LICENSE';

const LICENCE_FILE = /^(licen[cs]e|copying|notice)([.-]|$)/i;

/**
 * The packages in a bundle, sorted, each once: `name`, `version` and the text of the licence.
 * @param metafile esbuild's account of the bundle.
 * @param root Folder that its paths are relative to.
 * @throws Error when a package comes without the text of its licence.
 */
export function bundledPackages(metafile, root) {
  const packages = [...bundledFolders(metafile)]
    .map((folder) => describe(path.join(root, folder), root))
    .sort((a, b) => (a.title < b.title ? -1 : 1));
  return [...new Map(packages.map((each) => [each.title, each])).values()];
}

/** The text of all licences. */
export function licencesText(packages) {
  const parts = [
    'minimind contains code of these packages, each under its own licence.',
    ...packages.map(({ title, text }) => `${title}\n\n${text}`),
  ];
  return `${parts.join(`\n\n${'='.repeat(80)}\n\n`)}\n`;
}

/** Folders of the packages that something in the output comes from. */
function bundledFolders({ outputs }) {
  const files = Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0),
  );
  const folders = files.map(
    ([file]) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0],
  );
  return new Set(folders.filter((folder) => folder !== undefined));
}

function describe(folder, root) {
  const { name, version, license, module } = JSON.parse(
    readFileSync(path.join(folder, 'package.json'), 'utf8'),
  );
  const files = readdirSync(folder).filter((file) => LICENCE_FILE.test(file));
  const texts = files.sort().map((file) => readFileSync(path.join(folder, file), 'utf8').trim());
  if (files.length === 0 && license === 'Apache-2.0') {
    texts.push(header(path.join(folder, module)), readFileSync(path.join(root, APACHE), 'utf8'));
  }
  if (texts.length === 0) throw new Error(`${name} ${version} has no file with its licence`);
  return { name, version, title: `${name} ${version} (${license})`, text: texts.join('\n\n') };
}

/** The comment in a source file that names its owner and its licence. */
function header(file) {
  const comment = /^\/\*\*\n \* @license\n(.*?) \*\//s.exec(readFileSync(file, 'utf8'))?.[1];
  if (comment === undefined) throw new Error(`${file} names no licence`);
  return comment.replace(/^ \* ?/gm, '').trim();
}
