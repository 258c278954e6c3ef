/**
 * The examples in the tarball, for `postgrad example`. `pack.mjs` calls it.
 *
 *   examples/          their sources, to read and to copy, and `examples.json`, which lists them
 *   dist/examples/     what is compiled of them, which workers load by its place; they import the library by its name, as a user's program does
 *
 * They import no package of others, which would be one more that users install: charts and bars are those of postgrad/training.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { root, walk } from './setup.mjs'

const folder = join(root, 'apps/examples')

const isOfTests = (path) => path.split(sep).includes('fixtures') || /\.(test|suite)\./.test(basename(path))

export function packExamples(stage) {
  cpSync(join(folder, 'examples.json'), join(stage, 'examples/examples.json'))
  for (const { path } of walk(join(folder, 'src'))) {
    const within = relative(join(folder, 'src'), path)
    if (!isOfTests(within)) put(join(stage, 'examples', within), readFileSync(path))
  }
  for (const { path } of walk(join(folder, 'dist'))) {
    const within = relative(join(folder, 'dist'), path)
    if (!path.endsWith('.js') || isOfTests(within)) continue
    const text = readFileSync(path, 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '')
    const other = /^import [^'\n]*'((?!\.|node:|postgrad['/])[^'\n]+)'/m.exec(text)?.[1]
    if (other !== undefined) throw new Error(`apps/examples, ${within}: imports '${other}', which a user's installation does not have`)
    put(join(stage, 'dist/examples', within), text)
  }
}

function put(file, contents) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, contents)
}
