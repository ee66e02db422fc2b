// The site: built from pages/, which build.js writes.
import { readFileSync } from 'node:fs';

const groups = JSON.parse(readFileSync(new URL('../pages/commands.json', import.meta.url), 'utf8'));
const index = readFileSync(new URL('../pages/index.md', import.meta.url), 'utf8');

/** Sections of the index, with the links of each. */
const sections = [...index.matchAll(/^\*\*(.+)\*\*$([^*]*)/gm)].map(([, text, list]) => ({
  text,
  collapsed: false,
  items: [...list.matchAll(/\[([^\]]+)\]\(([\w/-]+)\.md\)/g)].map(([, name, file]) => ({
    text: name[0].toUpperCase() + name.slice(1),
    link: `/${file}`,
  })),
}));

export default {
  title: 'minimind',
  description:
    'What a language model costs before it is trained: parameters, memory, FLOPs and GPUs.',
  // The folder of the site on its server, as /minimind/.
  base: process.env.SITE_BASE ?? '/',
  srcDir: 'pages',
  cleanUrls: true,
  // Names in angle brackets are text in these pages.
  markdown: { html: false, attrs: { disable: true } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Documentation', link: '/' },
      { text: 'Commands', link: '/commands/' },
      { text: 'API', link: '/api/' },
    ],
    sidebar: {
      '/commands/': groups.map(({ title, commands }) => ({
        text: title,
        items: commands.map(({ id, name }) => ({
          text: name,
          link: `/commands/${id.replaceAll(':', '-')}`,
        })),
      })),
      '/api/': ['minimind', 'minimind-browser', 'minimind-modules', 'minimind-random'].map(
        (name) => ({ text: name.replace('-', '/'), link: `/api/${name}` }),
      ),
      '/': sections,
    },
  },
};
