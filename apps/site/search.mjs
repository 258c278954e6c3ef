/**
 * The demands on the search, as data: words of newcomers that our pages do not use, and queries with the place that must be among the first results. `build.mjs` asks the built
 * index, with the options that the site uses.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import MiniSearch from 'minisearch'

/** Section of the site → words that lead to it. Without an anchor, the top of the page. */
export const WORDS = {
  'start.md': 'get started, quick start, hello world, getting started, first program',
  'start.md#1-make-a-project': 'install setup npm add package',
  'start.md#2-write-the-program': 'send tensor to worker',
  'overview.md#install': 'install setup npm add package',
  'overview.md#your-first-distributed-gradient': 'first example, send tensor to worker',
  'guide/examples.md': 'examples demo sample programs parameter server tutorial',
  'guide/supported.md': 'versions compatibility windows mac macos linux bun deno',
  'guide/supported.md#systems': 'gpu cuda metal webgpu apple silicon',
  'guide/launching.md': 'start a cluster run a program create workers threads',
  'guide/launching.md#debugging': 'debugger breakpoint inspect vscode',
  'guide/launching.md#ending-a-cluster': 'stop shutdown exit quit close',
  'guide/main-thread.md': 'call a worker from main, send tensor to worker',
  'guide/training.md#save-and-load-a-model': 'save model, load model, export weights, pretrained, pytorch weights',
  'guide/training.md#checkpoints': 'save model, resume training, continue after a crash, save and load checkpoint',
  'guide/training.md#memory': 'memory leak, out of memory, free a tensor, garbage collection',
  'guide/data-parallel.md': 'ddp distributed data parallel multi worker training',
  'guide/collectives.md': 'allreduce nccl gloo mpi send tensor to worker',
  'guide/pipelines.md': 'pipeline parallelism, model too large for one worker, split a model',
  'guide/processes.md': 'multi node, several machines, cluster of computers, network, docker',
  'guide/members.md#when-a-worker-dies': 'kill worker, crash, restart a worker, fault tolerance, elastic',
  'guide/jobs.md': 'thread pool, worker pool, queue of tasks',
  'guide/reinforcement-learning.md': 'cartpole rl gym environment agent observer',
  'guide/kernels.md': 'custom operation, gpu.js, write an op',
  'guide/pytorch.md': 'port a pytorch program, migrate from torch.distributed.rpc, python',
  'guide/limits.md': 'timeout, default timeout, maximum size, options',
  'guide/limits.md#calls-references-streams': 'timeout of a call, rpc timeout default',
  'guide/troubleshooting.md': 'debug a problem, does not work, help, faq',
  'guide/troubleshooting.md#it-hangs': 'hang hangs stuck freeze frozen deadlock never ends waits forever timeout',
  'guide/troubleshooting.md#the-numbers-differ':
    'different numbers, different results, not reproducible, seed, wrong result, nondeterministic',
  'guide/troubleshooting.md#it-is-slow': 'slow performance speed profiling',
  'guide/troubleshooting.md#it-runs-out-of-memory': 'out of memory oom heap leak',
  'guide/troubleshooting.md#the-process-does-not-end': 'process does not exit, hangs at the end',
  'guide/troubleshooting.md#a-test-fails-now-and-then': 'flaky test, race condition',
  'tutorials/observers-and-agent.md': 'cartpole reinforcement learning rl gym',
  'tutorials/testing.md': 'unit test of a distributed program, race condition',
  'tutorials/local-cluster.md': 'first cluster, local workers, model parallel',
  'testing.md': 'unit test, mock a worker, jest vitest, simulate',
  'testing.md#find-a-race': 'race condition, data race, flaky',
  'speed.md': 'performance benchmark fast overhead',
  'security.md': 'tls ssl certificate encryption password authentication attack',
}

/** Query of a newcomer → the start of an address that must be among the first `AMONG` results. */
export const QUERIES = {
  hang: 'guide/troubleshooting.html#it-hangs',
  timeout: 'guide/limits.html',
  'send tensor to worker': 'tutorials/local-cluster.html',
  'how do I save a model': 'guide/training.html',
  'two machines': 'guide/processes.html#several-machines',
  deadlock: 'guide/troubleshooting.html#it-hangs',
  slow: 'guide/troubleshooting.html#it-is-slow',
  'parameter server': 'guide/examples.html',
  'save model': 'guide/training.html',
  'out of memory': 'guide/troubleshooting.html#it-runs-out-of-memory',
  'different numbers': 'guide/troubleshooting.html#the-numbers-differ',
  cartpole: 'guide/reinforcement-learning.html',
  'kill worker': 'guide/members.html',
  torchrun: 'guide/processes.html',
  install: 'start.html#1-make-a-project',
  'getting started': 'start.html',
  gpu: 'guide/supported.html',
  'race condition': 'testing.html#find-a-race',
  RPC_TIMEOUT: 'errors/calls.html#rpc_timeout',
  allReduce: 'api/collectives.html#allReduce',
}
const AMONG = 3

/**
 * How the search ranks. The guide is worth more than the reference, and that more than pages on how postgrad is built. The browser gets the
 * text of these functions, so they use nothing from outside of them.
 */
export const searchOptions = {
  fuzzy: (term) => (term.length > 4 ? 0.15 : false),
  prefix: (term) => term.length > 2,
  weights: { prefix: 0.3, fuzzy: 0.2 },
  processTerm: (term) =>
    /^(a|an|and|are|can|do|does|for|from|how|i|in|is|it|my|of|on|or|the|to|what|when|why|with)$/i.test(term) ? null : term.toLowerCase(),
  boost: { title: 4, text: 1, titles: 1 },
  boostDocument: (address) => {
    if (/^\/(architecture|changelog|contributing|mutations|security-tests|pytorch|cost-of-a-pass)\b/.test(address)) return 0.3
    if (/^\/errors\//.test(address)) return 0.35
    return /^\/api\//.test(address) ? 0.45 : 1.2
  },
}

/** Adds the words of each section after its heading, for the index alone. */
export function withWords(html, place) {
  let text = html
  for (const [section, words] of Object.entries(WORDS)) {
    const [page, anchor] = section.split('#')
    if (page !== place) continue
    const heading = anchor === undefined ? /<h1[\s\S]*?<\/h1>/ : new RegExp(`<h\\d id="${anchor}"[\\s\\S]*?</h\\d>`)
    if (!heading.test(text)) throw new Error(`apps/site/search.mjs: ${place} has no section '${anchor ?? 'top'}'`)
    text = text.replace(heading, (found) => `${found}<p>${words}. ${words}</p>`)
  }
  return text
}

/** Queries whose place is not among the first results, each with the results. */
export async function lostQueries(folder) {
  const chunks = join(folder, 'assets/chunks')
  const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndexroot'))
  const { default: index } = await import(pathToFileURL(join(chunks, file)).href)
  const search = MiniSearch.loadJSON(index, { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'], searchOptions })
  return Object.entries(QUERIES).flatMap(([query, place]) => {
    const found = search.search(query).slice(0, AMONG)
    if (found.some(({ id }) => id.startsWith(`/${place}`))) return []
    return [`'${query}' does not find ${place}, but ${found.map(({ id }) => id).join(', ')}`]
  })
}
