/**
 * Projects with bundlers, for `users-projects.mjs`: each takes a program in two files that imports subpaths, with the setting of the guide and of POSTGRAD_BUNDLED, and the result
 * launches it. rollup also takes the library in, with a plugin that indents its lines.
 */
export const ROWS = 'rows 16'

const PROGRAM = {
  'helper.mjs': 'export const two = 2\n',
  'program.mjs': `import { call, DistributedOptimizer, distAutograd, expose, mseLoss, RemoteModule, randn } from 'postgrad'
import { Linear } from 'postgrad/nn'
import { SGD } from 'postgrad/optim'
import { two } from './helper.mjs'
export const scale = (x) => x.mul(two)
export async function main() {
  const model = new RemoteModule('worker1', Linear, [4, 1])
  const parameters = await model.remoteParameters()
  const optimizer = new DistributedOptimizer(SGD, parameters, { lr: 0.05 })
  const x = randn([16, 4])
  const doubled = await call('worker1', scale, [x])
  await distAutograd.context(async (ctx) => {
    await ctx.backward([mseLoss(await model.forward(x), x.sum(1, true))])
    await optimizer.step(ctx)
  })
  return doubled.shape[0]
}
expose({ scale, main, Linear })
`,
  'run.mjs': `import { launch } from 'postgrad'
import { main } from './program.mjs'
const cluster = await launch(new URL(/* webpackIgnore: true */ './program.mjs', import.meta.url), { workers: ['worker0', 'worker1'] })
try {
  console.log('rows', await cluster.on('worker0').run(main))
} finally {
  await cluster.close()
}
`,
  // For a tool that makes one file of one entry.
  'one.mjs': `import { isMainThread } from 'node:worker_threads'
import { launch } from 'postgrad'
import { main } from './program.mjs'
export * from './program.mjs'
if (isMainThread) {
  const cluster = await launch(new URL(import.meta.url), { workers: ['worker0', 'worker1'] })
  try {
    console.log('rows', await cluster.on('worker0').run(main))
  } finally {
    await cluster.close()
  }
}
`,
}
const EXTERNAL = '[/^postgrad(\\/|$)/]'
const OUTPUT = "{ dir: 'out', format: 'es', entryFileNames: '[name].mjs' }"
const INPUT = "['run.mjs', 'program.mjs']"
const VITE = `export default { build: { ssr: true, outDir: 'out', rollupOptions: { input: ${INPUT}, external: ${EXTERNAL}, output: { entryFileNames: '[name].mjs' } } } }\n`
const OUTSIDE = { command: ['node', 'out/run.mjs'], prints: ROWS }

/** @param files of the tool @param runs its commands, and what they make */
const project = (dependencies, files, runs) => ({ dependencies, type: 'module', files: { ...PROGRAM, ...files }, runs })

export const BUNDLERS = {
  esbuild: project({ esbuild: '0.28.2' }, {}, [
    [
      ...['esbuild', 'run.mjs', 'program.mjs', '--bundle', '--splitting', '--platform=node', '--target=node20', '--format=esm'],
      ...['--external:postgrad', '--outdir=out', '--out-extension:.js=.mjs'],
    ],
    OUTSIDE,
  ]),
  rollup: project(
    {
      rollup: '4.68.8',
      '@rollup/plugin-commonjs': '29.0.3',
      '@rollup/plugin-json': '6.1.0',
      '@rollup/plugin-node-resolve': '16.0.3',
    },
    {
      'tensors.mjs': "import { ones } from 'postgrad'\nconsole.log(ones([2]).mul(3).toArray().join())\n",
      'outside.config.mjs': `import { nodeResolve } from '@rollup/plugin-node-resolve'
export default { input: ${INPUT}, external: ${EXTERNAL}, plugins: [nodeResolve({ preferBuiltins: true })], output: ${OUTPUT} }
`,
      'inside.config.mjs': `import commonjs from '@rollup/plugin-commonjs'
import json from '@rollup/plugin-json'
import { nodeResolve } from '@rollup/plugin-node-resolve'
export default { input: 'tensors.mjs', plugins: [nodeResolve({ preferBuiltins: true }), commonjs(), json()], output: ${OUTPUT} }
`,
    },
    [
      ['rollup', '-c', 'outside.config.mjs'],
      OUTSIDE,
      ['rollup', '-c', 'inside.config.mjs'],
      { command: ['node', 'out/tensors.mjs'], prints: '3,3' },
    ],
  ),
  rolldown: project(
    { rolldown: '1.3.2' },
    { 'rolldown.config.mjs': `export default { input: ${INPUT}, external: ${EXTERNAL}, platform: 'node', output: ${OUTPUT} }\n` },
    [
      ['rolldown', '-c', 'rolldown.config.mjs'],
      OUTSIDE,
      // The words that the guide had before: the second copy says that it is one.
      ['rolldown', 'one.mjs', '--external', 'postgrad', '--platform', 'node', '-d', 'twice'],
      { command: ['node', 'twice/one.js'], fails: 'POSTGRAD_TWICE: a second copy of postgrad' },
    ],
  ),
  vite7: project({ vite: '7.3.8' }, { 'vite.config.mjs': VITE }, [['vite', 'build'], OUTSIDE]),
  vite8: project({ vite: '8.3.8' }, { 'vite.config.mjs': VITE }, [['vite', 'build'], OUTSIDE]),
  webpack: project(
    { webpack: '5.113.0', 'webpack-cli': '7.3.1' },
    {
      'webpack.config.mjs': `import { fileURLToPath } from 'node:url'
export default {
  mode: 'production',
  target: 'node',
  entry: { run: './run.mjs', program: './program.mjs' },
  experiments: { outputModule: true },
  externals: ${EXTERNAL},
  externalsType: 'module',
  output: { path: fileURLToPath(new URL('out', import.meta.url)), filename: '[name].mjs', module: true, chunkFormat: 'module' },
}
`,
    },
    [['webpack'], OUTSIDE],
  ),
  ncc: project({ '@vercel/ncc': '0.45.0' }, {}, [
    ['ncc', 'build', 'one.mjs', '-e', 'postgrad', '-e', 'postgrad/nn', '-e', 'postgrad/optim', '-o', 'out'],
    { command: ['node', 'out/index.mjs'], prints: ROWS },
  ]),
  // It calls its files .js.
  tsup: project(
    { tsup: '9.0.0', typescript: '5.9.3' },
    { 'run.mjs': PROGRAM['run.mjs'].replace("'./program.mjs', import", "'./program.js', import") },
    [['tsup', 'run.mjs', 'program.mjs', '--format', 'esm', '--out-dir', 'out'], { command: ['node', 'out/run.js'], prints: ROWS }],
  ),
}
