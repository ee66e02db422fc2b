import { describe, expect, test } from 'vitest';
import { inPackage } from '../fixtures.js';
import { NO_BROWSER, NO_BROWSER_NOTE, withPage } from './chromium.js';

describe.skipIf(NO_BROWSER)(`pages in Chromium${NO_BROWSER_NOTE}`, () => {
  test('load modules from a folder, and report what goes wrong', () =>
    withPage(
      {
        '/': '<h1>page</h1><script type="module">await import("/missing.js")</script>',
        '/configs/': { folder: inPackage('configs') },
      },
      async ({ page, url, messages }) => {
        await page.goto(url);
        expect(await page.textContent('h1')).toBe('page');
        const answers = await page.evaluate(`Promise.all([
          fetch('/configs/published.yaml').then(({ status }) => status),
          fetch('/configs/%2e%2e/package.json').then(({ status }) => status),
          fetch('http://localhost:9/').then(() => 'reached', () => 'refused'),
        ])`);
        expect(answers).toEqual([200, 404, 'refused']);
        expect(messages.join('\n')).toContain('request to http://localhost:9/');
        expect(messages.join('\n')).toContain('missing.js');
      },
    ));
});
