/** What a user's compiler reads with `skipLibCheck: false`. */
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'

const packages = new URL('../../', import.meta.url)

/** The declarations that this one imports: those of this repository, and the packages of others. */
function importsOf(file: URL): { readonly own: readonly URL[]; readonly others: readonly string[] } {
  const specifiers = [...readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*['"]([^'"]+)['"]/g)].map(([, specifier]) => specifier!)
  const own: URL[] = []
  const others: string[] = []
  for (const specifier of specifiers) {
    const [, name, door = 'index'] = /^@postgrad\/([a-z-]+)(?:\/(\w+))?$/.exec(specifier) ?? []
    if (specifier.startsWith('.')) own.push(new URL(specifier.replace(/\.js$/, '.d.ts'), file))
    else if (name !== undefined) own.push(new URL(`${name}/dist/${door}.d.ts`, packages))
    else others.push(specifier)
  }
  return { own, others }
}

test('the public types name Node and nothing of other packages, whose types may need more than a program has', () => {
  const seen = new Set<string>()
  const foreign: string[] = []
  const visit = (file: URL): void => {
    if (seen.has(file.href)) return
    seen.add(file.href)
    const { own, others } = importsOf(file)
    for (const other of others) if (!other.startsWith('node:')) foreign.push(`${file.pathname.slice(packages.pathname.length)}: ${other}`)
    own.forEach(visit)
  }
  for (const door of ['index', 'nn', 'optim', 'data', 'jobs', 'types', 'plugin', 'testing'])
    visit(new URL(`postgrad/dist/${door}.d.ts`, packages))
  expect(foreign).toEqual([])
  expect(seen.size).toBeGreaterThan(100)
})
