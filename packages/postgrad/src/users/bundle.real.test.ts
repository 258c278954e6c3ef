/** postgrad in a bundle: it loads, and calls that need its files name the missing setting of the bundler. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from '@jest/globals'
import { script } from '@postgrad/cluster/suite'
import { build } from 'esbuild'

const USES = `
  class Hidden extends Module { #layer = new Linear(2, 2) }
  const end = (fn) => Promise.resolve().then(fn).then(() => 'done', ({ code, message, cause }) => \`\${code ?? message} \${cause?.code ?? ''}\`.trim())
  const uses = { loaded: () => {}, launch: () => launch(process.argv[1], { workers: 1 }), jobs: () => jobs(process.argv[1]), kernels: () => ones([64, 64]).matmul(ones([64, 64])), hidden: () => new Hidden().parameters() }
  const run = async () => { for (const [name, use] of Object.entries(uses)) console.log(name, await end(use)) }
  run()`

test.each(['cjs', 'esm'] as const)('CLU-57: in a bundle (%s) what is missing is POSTGRAD_BUNDLED', async (format) => {
  const folder = await mkdtemp(join(tmpdir(), 'postgrad-bundle-'))
  try {
    const outfile = join(folder, format === 'cjs' ? 'out.cjs' : 'out.mjs')
    const resolveDir = fileURLToPath(new URL('.', import.meta.url))
    await build({
      stdin: {
        contents: `import { jobs, launch, ones } from '../index.js'\nimport { Linear, Module } from '../nn.js'\n${USES}`,
        resolveDir,
      },
      ...{ bundle: true, platform: 'node', format, outfile, logLevel: 'error', external: ['gpu.js'] },
      ...(format === 'cjs'
        ? {}
        : { banner: { js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url)" } }),
    })
    const { code, out, err } = await script(pathToFileURL(outfile))
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.trim().split('\n')).toEqual([
      'loaded done',
      'launch LAUNCH_FAILED POSTGRAD_BUNDLED',
      'jobs POSTGRAD_BUNDLED',
      'kernels POSTGRAD_BUNDLED',
      'hidden MODULE_HIDDEN',
    ])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
