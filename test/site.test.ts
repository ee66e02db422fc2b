/** Pages of the documentation site, without the packages that build it. */
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { commandNames, inPackage } from './fixtures.js';

const REPOSITORY = 'https://example.com/a/b';

async function sitePages(): Promise<Record<string, string>> {
  const { commandPages } = await import(inPackage('docs/site/command-pages.js'));
  const { docPages } = await import(inPackage('docs/site/doc-pages.js'));
  return { ...docPages(inPackage('docs'), REPOSITORY), ...commandPages().files };
}

describe('the documentation site', () => {
  it('has a page for each command, with its flags', async () => {
    const pages = await sitePages();
    for (const name of commandNames()) {
      const page = pages[`commands/${name.replaceAll(' ', '-')}.md`] ?? '';
      expect(page).toMatch(new RegExp(`^# minimind ${name}\n`));
      expect(pages['commands/index.md']).toContain(`[minimind ${name}](`);
    }
    expect(pages['commands/draw.md']).toContain('| `--block N\\|PATH` | draw block N alone');
  });

  it('has links that lead to its pages, or to the repository', async () => {
    const pages = await sitePages();
    const broken = Object.entries(pages).flatMap(([name, text]) =>
      [
        ...text
          .replaceAll(/^(`{3,}).*\n[\s\S]*?^\1$|`[^`\n]*`/gm, '')
          .matchAll(/\]\(([^()\s#]+)[^()\s]*\)/g),
      ]
        .map(([, target = '']) => target)
        .filter((target) => {
          if (/^[a-z]+:/.test(target)) return false;
          const full = path.posix.join(path.posix.dirname(name), target);
          return !(full in pages) && !/^gallery\/[\w-]+\.svg$/.test(full);
        })
        .map((target) => `${name}: ${target}`),
    );
    expect(broken).toEqual([]);
    expect(pages['models.md']).toContain(`](${REPOSITORY}/blob/main/configs/published.yaml)`);
    expect(pages['index.md']).toContain('](decisions/index.md)');
  });

  it('keeps code as it is, and drops comments', async () => {
    const { sitePage } = await import(inPackage('docs/site/doc-pages.js'));
    const page = '<!-- a -->\n[x](../README.md)\n\n```md\n<!-- b -->\n[x](../README.md)\n```\n';
    expect(sitePage(page, 'x.md', REPOSITORY)).toBe(
      `[x](${REPOSITORY}/blob/main/README.md)\n\n\`\`\`md\n<!-- b -->\n[x](../README.md)\n\`\`\`\n`,
    );
  });
});
