// Prints the section of a version in CHANGELOG.md, for a release:
//   node scripts/release-notes.js v1.2.3
// Fails unless the version is that of package.json and the section has a date.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const read = (name) => readFileSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), 'utf8');

/**
 * The section of `version` in a changelog, without its heading.
 * @param tag `v1.2.3`, as the tag of a release.
 * @throws Error for another version than `packageVersion`, and without a section that has a date and a text.
 */
export function releaseNotes(tag, changelog, packageVersion) {
  const version = tag.replace(/^v/, '');
  if (version !== packageVersion) {
    throw new Error(`the tag is ${tag}, and package.json has ${packageVersion}`);
  }
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.startsWith(`[${version}]`));
  if (section === undefined) throw new Error(`CHANGELOG.md has no section [${version}]`);
  const [heading = '', ...lines] = section.split('\n');
  if (!/\] - \d{4}-\d{2}-\d{2}$/.test(heading.trimEnd())) {
    throw new Error(`the section [${version}] of CHANGELOG.md has no date, as in "- 2026-11-28"`);
  }
  const text = lines.join('\n').trim();
  if (text === '') throw new Error(`the section [${version}] of CHANGELOG.md is empty`);
  return text;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const { version } = JSON.parse(read('package.json'));
    console.log(releaseNotes(process.argv[2] ?? '', read('CHANGELOG.md'), version));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
