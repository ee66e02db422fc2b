// The pages of docs/ as pages of the site: links that leave docs/ lead to the repository.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** @param repository Address of the repository. */
export function docPages(docs, repository) {
  const names = readdirSync(docs, { recursive: true })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => name.endsWith('.md') && !name.startsWith('site/'));
  const files = Object.fromEntries(
    names.map((name) => [
      name === 'README.md' ? 'index.md' : name,
      sitePage(readFileSync(path.join(docs, name), 'utf8'), name, repository),
    ]),
  );
  files['decisions/index.md'] = decisionList(files);
  return files;
}

/** A page without comments, with the links of the site. Code keeps every character. */
export const sitePage = (text, name, repository) =>
  text
    .split(/(^(`{3,}).*\n[\s\S]*?^\2$)/m)
    .filter((_, index) => index % 3 !== 2)
    .map((part, index) => (index % 2 === 1 ? part : prose(part, name, repository)))
    .join('');

const prose = (text, name, repository) =>
  text
    .replaceAll(/<!--[\s\S]*?-->\n?/g, '')
    .replaceAll(/\]\(([^()\s]+)\)/g, (_, target) => `](${siteLink(target, name, repository)})`);

function siteLink(target, name, repository) {
  if (/^[a-z]+:|^#/.test(target)) return target;
  const [file, anchor] = target.split('#');
  const from = path.posix.dirname(`docs/${name}`);
  const full = path.posix.join(from, file);
  const rest = anchor === undefined ? '' : `#${anchor}`;
  if (full === 'docs/decisions') return `${file}/index.md`;
  if (full === 'docs/README.md') return `${path.posix.dirname(file)}/index.md${rest}`;
  const isPage = full.startsWith('docs/') && /\.(md|svg)$/.test(full);
  if (isPage) return target;
  const isFolder = !path.posix.basename(full).includes('.');
  return `${repository}/${isFolder ? 'tree' : 'blob'}/main/${full}${rest}`;
}

function decisionList(files) {
  const rows = Object.entries(files)
    .filter(([name]) => /^decisions\/\d/.test(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]) => {
      const title = /^# (.+)$/m.exec(text)?.[1] ?? name;
      return `- [${title}](${path.posix.basename(name)})`;
    });
  return `# Decisions\n\n${rows.join('\n')}\n`;
}
