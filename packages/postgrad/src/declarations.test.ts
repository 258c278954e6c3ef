/** Public declarations, checked by `skipLibCheck: false`. */
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'

const packages = new URL('../../', import.meta.url)
const DOORS = [
  'index',
  'nn',
  'nn-functional',
  'optim',
  'data',
  'jobs',
  'distributed',
  'pipelining',
  'types',
  'plugin',
  'testing',
  'testing-matchers',
]

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

/** Every declaration that a door leads to. */
function publicFiles(): readonly URL[] {
  const seen = new Map<string, URL>()
  const visit = (file: URL): void => {
    if (seen.has(file.href)) return
    seen.set(file.href, file)
    importsOf(file).own.forEach(visit)
  }
  for (const door of DOORS) visit(new URL(`postgrad/dist/${door}.d.ts`, packages))
  expect(seen.size).toBeGreaterThan(100)
  return [...seen.values()]
}

test('the public types name Node and nothing of other packages, whose types may need more than a program has', () => {
  const foreign = publicFiles().flatMap((file) =>
    importsOf(file)
      .others.filter((other) => !other.startsWith('node:'))
      .map((other) => `${file.pathname.slice(packages.pathname.length)}: ${other}`),
  )
  expect(foreign).toEqual([])
})

test('the public types give a typed array no type of its buffer, which TypeScript before 5.7 does not know', () => {
  const newer = publicFiles().flatMap(
    (file) => readFileSync(file, 'utf8').match(/.*\b(?:(?:Int|Uint|Float)\d+(?:Clamped)?Array|Buffer|DataView)<.*/g) ?? [],
  )
  expect(newer).toEqual([])
})
