/** Links inside the documentation lead to a file and a heading that exist. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPackage } from './fixtures.js';

const PAGES = [
  ...['README.md', 'README.zh-CN.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...(fs.readdirSync(inPackage('docs'), { recursive: true }) as string[])
    .filter((file) => file.endsWith('.md') && !file.startsWith('site'))
    .map((file) => path.posix.join('docs', file.split(path.sep).join('/'))),
];

/** Text without fenced blocks, which have no links and no headings. */
const textOf = (page: string): string =>
  fs.readFileSync(inPackage(page), 'utf8').replaceAll(/^(```+).*\n[\s\S]*?^\1$/gm, '');

/** Targets of the links and pictures of a page, without code. */
const targetsOf = (page: string): string[] => [
  ...[
    ...textOf(page)
      .replaceAll(/`[^`\n]*`/g, '')
      .matchAll(/\]\(([^()\s]+)\)/g),
  ].map(([, target = '']) => target),
  ...[...textOf(page).matchAll(/ (?:src|href)="([^"]+)"/g)].map(([, target = '']) => target),
];

/** Anchors that GitHub gives the headings of a page: lower case, without punctuation, spaces as hyphens. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of textOf(page).matchAll(/^#{1,6} (.+)$/gm)) {
    const shown = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const base = shown
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = base;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${base}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

const isElsewhere = (target: string) => /^[a-z]+:/.test(target);

describe('the documentation', () => {
  it.each(PAGES)('%s has links that work', (page) => {
    const broken = targetsOf(page).filter((target) => {
      if (isElsewhere(target)) return false;
      const [file = '', anchor] = target.split('#');
      const found = file === '' ? page : path.posix.join(path.posix.dirname(page), file);
      if (!fs.existsSync(inPackage(found))) return true;
      return anchor !== undefined && !anchorsOf(found).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  it('lists every page', () => {
    const linked = new Set(targetsOf('docs/README.md').map((target) => `docs/${target}`));
    const isListed = (page: string) =>
      page === 'docs/README.md' || page.startsWith('docs/decisions/') || linked.has(page);
    expect(PAGES.filter((page) => page.startsWith('docs/') && !isListed(page))).toEqual([]);
  });
});
