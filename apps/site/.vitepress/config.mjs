/** The site, as VitePress builds it from the pages that `collect.mjs` gathered. Nothing in it comes from another server: no fonts, no search service, no counters. */
import { defineConfig } from 'vitepress'
import { linkOf, NAV, placeOnSite, sidebars } from '../contents.mjs'
import { searchOptions, withWords } from '../search.mjs'
import { slug } from '../slug.mjs'

export default defineConfig({
  title: 'postgrad',
  description: 'Distributed autograd for TypeScript on Node',
  lang: 'en',
  srcDir: '.cache/pages',
  outDir: '../../out/site',
  cacheDir: '.cache/vitepress',
  // The sidebars are one file that all pages share, not a part of each page.
  metaChunk: true,
  // VitePress looks for pages only; links.mjs also sees these files.
  ignoreDeadLinks: [/\.txt$/],
  // A page that a link shows is loaded when the reader follows the link, not before.
  router: { prefetchLinks: false },
  head: [
    [
      'link',
      {
        rel: 'icon',
        href: 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="4" cy="8" r="3" fill="%232f6fb3"/><circle cx="12" cy="8" r="3" fill="%23c2571a"/></svg>',
      },
    ],
  ],
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: slug },
    toc: { slugify: slug },
    headers: { slugify: slug },
  },
  themeConfig: {
    siteTitle: 'postgrad',
    nav: NAV.map(([text, file]) => ({ text, link: linkOf(placeOnSite(file)) })),
    sidebar: sidebars(),
    outline: { level: [2, 3], label: 'On this page' },
    docFooter: { prev: 'Previous page', next: 'Next page' },
    externalLinkIcon: true,
    search: {
      provider: 'local',
      options: {
        detailedView: false,
        miniSearch: { searchOptions },
        _render: (source, env, md) => withWords(md.render(source, env), env.relativePath),
      },
    },
  },
  // The index of the search is large, and loaded when a reader opens the search. A picture is a file: inlined, it would be in the page and in its script, twice each.
  vite: { build: { chunkSizeWarningLimit: 6000, assetsInlineLimit: 0 } },
})
