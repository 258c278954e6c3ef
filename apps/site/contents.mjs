/**
 * What the site contains, as data: its sections and their pages, in the order of the sidebar. A page is a markdown file of the repository. `collect.mjs` fails if a file of
 * `docs/` is in no section, and if an entry has no file.
 */
import { API_SECTIONS } from './api/pages.mjs'

/**
 * Section → its pages as [file, title in the sidebar, words of newcomers]. The search finds a page by these words, too, although the page does not use them.
 */
export const SECTIONS = {
  Start: [
    ['README.md', 'Overview', 'install setup quick start hello world npm first gradient'],
    ['docs/guide/examples.md', 'Examples', 'demo sample programs'],
    ['docs/guide/supported.md', 'What is supported', 'version windows mac macos linux bun deno compatibility gpu cuda'],
    ['docs/glossary.md', 'Glossary', 'terms words definitions'],
  ],
  Guide: [
    ['docs/guide/launching.md', 'Launching', 'start run shutdown exit ts-node debug bundle'],
    ['docs/guide/main-thread.md', 'The main thread', 'send tensor to worker call worker from main thread'],
    ['docs/guide/training.md', 'Training', 'save model load model weights train loop checkpoint'],
    ['docs/guide/data-parallel.md', 'Data-parallel training', 'ddp distributeddataparallel multi worker'],
    ['docs/guide/collectives.md', 'Collectives', 'allreduce all_reduce nccl gloo mpi'],
    ['docs/guide/pipelines.md', 'Pipelines', 'pipeline parallelism stages model too large'],
    ['docs/guide/processes.md', 'Processes and machines', 'torchrun multi node cluster ssh network slurm kubernetes docker'],
    ['docs/guide/members.md', 'Workers that come and go', 'kill worker crash restart elastic autoscale fault tolerance'],
    ['docs/guide/jobs.md', 'Jobs', 'thread pool worker pool piscina queue'],
    ['docs/guide/reinforcement-learning.md', 'Reinforcement learning', 'cartpole rl agent observers environment gym'],
    ['docs/guide/kernels.md', 'Kernels of your own', 'custom operation gpu.js'],
  ],
  'Coming from elsewhere': [
    ['docs/guide/pytorch.md', 'PyTorch', 'port migrate torch.distributed.rpc python'],
    ['docs/pytorch.md', 'Every PyTorch name', 'torch names mapping equivalent'],
  ],
  Testing: [['docs/testing.md', 'Test a distributed program', 'race deadlock flaky unit test mock simulate']],
  'Limits and performance': [
    ['docs/guide/limits.md', 'Limits and timeouts', 'timeout default maximum options'],
    ['docs/speed.md', 'Speed', 'performance benchmark fast slow'],
    ['docs/cost-of-a-pass.md', 'The cost of a pass', 'overhead messages latency'],
  ],
  'When something goes wrong': [
    [
      'docs/guide/troubleshooting.md',
      'By symptom',
      'hang hangs stuck freeze frozen deadlock different numbers out of memory oom slow debug',
    ],
    ['docs/errors/README.md', 'All errors', 'exception error code catch'],
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
    ['SECURITY.md', 'Security', 'keys tls certificates attack encryption password authentication'],
    ['docs/security-tests.md', 'Which test holds which promise'],
  ],
  'How it is built': [
    ['ARCHITECTURE.md', 'Architecture', 'internals source code'],
    ['CONTRIBUTING.md', 'Contributing', 'develop pull request'],
    ['CHANGELOG.md', 'Changelog', 'release notes version history'],
    ['docs/mutations.md', 'Does the test kit find bugs?'],
  ],
}

/** The links at the top. */
export const NAV = [
  ['Start', 'README.md'],
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

/** Every page as { file, place, title, words, section }. */
export const PAGES = Object.entries(SECTIONS).flatMap(([section, pages]) =>
  pages.map(([file, title, words = '']) => ({ file, place: placeOnSite(file), title, words, section })),
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
