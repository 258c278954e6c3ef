/**
 * The contents of the site, as data: its sections and their pages, in the order of the sidebar. A page is a markdown file of the repository. `collect.mjs` fails if a file of
 * `docs/` is in no section, and if an entry has no file.
 */
import { API_SECTIONS } from './api/pages.mjs'

/** Section → its pages as [file, title in the sidebar]. */
export const SECTIONS = {
  Start: [
    ['docs/start.md', 'Five minutes'],
    ['README.md', 'Overview'],
    ['docs/guide/examples.md', 'Examples'],
    ['docs/guide/supported.md', 'Supported systems'],
    ['docs/glossary.md', 'Glossary'],
  ],
  Tutorials: [
    ['docs/tutorials/local-cluster.md', 'A local cluster'],
    ['docs/tutorials/testing.md', 'Test a distributed pass'],
    ['docs/tutorials/observers-and-agent.md', 'Observers and an agent'],
  ],
  Guide: [
    ['docs/guide/launching.md', 'Launching'],
    ['docs/guide/main-thread.md', 'The main thread'],
    ['docs/guide/training.md', 'Training'],
    ['docs/guide/training-loop.md', 'Around a training loop'],
    ['docs/guide/data-parallel.md', 'Data-parallel training'],
    ['docs/guide/collectives.md', 'Collectives'],
    ['docs/guide/pipelines.md', 'Pipelines'],
    ['docs/guide/processes.md', 'Processes and machines'],
    ['docs/guide/members.md', 'Workers that come and go'],
    ['docs/guide/jobs.md', 'Jobs'],
    ['docs/guide/reinforcement-learning.md', 'Reinforcement learning'],
    ['docs/guide/kernels.md', 'Kernels of your own'],
  ],
  'How it works': [
    ['docs/how-it-works/index.md', 'Workers and mailboxes'],
    ['docs/how-it-works/call.md', 'A call'],
    ['docs/how-it-works/pass.md', 'A pass'],
    ['docs/how-it-works/smart.md', 'SMART and FAST'],
    ['docs/how-it-works/collective.md', 'A collective'],
    ['docs/how-it-works/pipeline.md', 'A pipeline'],
  ],
  'Coming from elsewhere': [
    ['docs/guide/pytorch.md', 'PyTorch'],
    ['docs/pytorch.md', 'Every PyTorch name'],
    ['docs/coming-from/ray.md', 'Ray'],
    ['docs/coming-from/comlink.md', 'Comlink'],
    ['docs/coming-from/piscina.md', 'Piscina'],
  ],
  Recipes: [
    ['docs/recipes/index.md', 'All recipes'],
    ['docs/recipes/resume.md', 'A run that continues'],
    ['docs/recipes/logging.md', 'Metrics and plots'],
    ['docs/recipes/mixed-cluster.md', 'Threads and machines'],
    ['docs/recipes/export.md', 'Export a model'],
    ['docs/recipes/hugging-face.md', 'Hugging Face'],
    ['docs/recipes/seeds.md', 'The same numbers twice'],
    ['docs/recipes/deadlines.md', 'Deadlines and cancelling'],
  ],
  Testing: [['docs/testing.md', 'Test a distributed program']],
  Operations: [['docs/operations.md', 'Running it for real']],
  'Limits and performance': [
    ['docs/guide/limits.md', 'Limits and timeouts'],
    ['docs/speed.md', 'Speed'],
    ['docs/cost-of-a-pass.md', 'The cost of a pass'],
  ],
  'When something goes wrong': [
    ['docs/guide/troubleshooting.md', 'By symptom'],
    ['docs/errors/README.md', 'All errors'],
    ['docs/errors/calls.md', 'Calls'],
    ['docs/errors/clusters.md', 'Clusters'],
    ['docs/errors/connections.md', 'Connections'],
    ['docs/errors/tensors.md', 'Tensors'],
    ['docs/errors/autograd.md', 'Autograd'],
    ['docs/errors/training.md', 'Training'],
    ['docs/errors/collectives.md', 'Collectives'],
    ['docs/errors/data.md', 'Data'],
    ['docs/errors/testing.md', 'Testing'],
  ],
  Security: [
    ['SECURITY.md', 'Security'],
    ['docs/security-tests.md', 'Which test holds which promise'],
  ],
  'How it is built': [
    ['ARCHITECTURE.md', 'Architecture'],
    ['CONTRIBUTING.md', 'Contributing'],
    ['CHANGELOG.md', 'Changelog'],
    ['docs/mutations.md', 'Does the test kit find bugs?'],
  ],
}

/** The links at the top. */
export const NAV = [
  ['Start', 'docs/start.md'],
  ['Guide', 'docs/guide/launching.md'],
  ['Testing', 'docs/testing.md'],
  ['When it fails', 'docs/guide/troubleshooting.md'],
  ['API', 'api/index.md'],
]

/** Where a file of the repository is on the site: 'docs/guide/launching.md' → 'guide/launching.md', 'SECURITY.md' → 'security.md'. */
export function placeOnSite(file) {
  if (file === 'README.md') return 'overview.md'
  return file.startsWith('docs/') ? file.slice('docs/'.length).replace(/README\.md$/, 'index.md') : file.toLowerCase()
}

/** Every page as { file, place, title, section }. */
export const PAGES = Object.entries(SECTIONS).flatMap(([section, pages]) =>
  pages.map(([file, title]) => ({ file, place: placeOnSite(file), title, section })),
)

/** 'guide/launching.md' → '/guide/launching' */
export const linkOf = (place) => `/${place.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')}`

/** VitePress's sidebars: one of the guide, one of the reference. */
export function sidebars() {
  const guide = Object.entries(SECTIONS).map(([text, pages]) => ({
    text,
    collapsed: false,
    items: pages.map(([file, title]) => ({ text: title, link: linkOf(placeOnSite(file)) })),
  }))
  const api = Object.entries(API_SECTIONS).map(([text, pages]) => ({
    text,
    collapsed: false,
    items: pages.map(([name, title]) => ({ text: title, link: `/api/${name}` })),
  }))
  return { '/api/': [{ text: 'API reference', items: [{ text: 'All names', link: '/api/' }] }, ...api], '/': guide }
}
