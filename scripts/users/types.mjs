/**
 * Projects for the compiler alone, for `users-projects.mjs`: TypeScript from 5.4 on reads every declaration of the package (`skipLibCheck: false`), as an ES module and as CommonJS; what a
 * CommonJS module gives fits into an ES module; and the matchers have their types in each runner.
 */
const DOORS = [
  '',
  '/nn',
  '/nn/functional',
  '/optim',
  '/data',
  '/jobs',
  '/distributed',
  '/pipelining',
  '/plugin',
  '/testing',
  '/testing/matchers',
]
const NAMES = `${DOORS.map((door, of) => `import * as door${of} from 'postgrad${door}'\n`).join('')}import type { LaunchOptions } from 'postgrad/types'
export type Options = LaunchOptions
console.log(${DOORS.map((_, of) => `door${of}`).join()})
`
const matchers = (
  runner,
) => `${runner === null ? '' : `import { expect, test } from '${runner}'\n`}import { matchers } from 'postgrad/testing/matchers'
expect.extend(matchers)
test('matchers', async () => {
  expect(1).toHaveSameBitsAs(1)
  expect(1).not.toHaveSameBitsAs(2)
  await expect(Promise.reject()).toRejectWithCode('X')
  await expect(Promise.resolve(1)).resolves.toHaveSameBitsAs(1)
  // @ts-expect-error there is no such matcher
  expect(1).toBeNothing()
})
`
const FILES = {
  'names.mts': NAMES,
  'names.cts': NAMES,
  'half.cts': `import { expose, type Tensor } from 'postgrad'
import { Linear } from 'postgrad/nn'
export const norm = (x: Tensor): Tensor => x.mul(x).sum()
export const layer = (): Linear => new Linear(2, 2)
expose({ norm })
`,
  'half.mts': `import { randn, Tensor } from 'postgrad'
import { SGD } from 'postgrad/optim'
import { layer, norm } from './half.cjs'
const x: Tensor = norm(randn([2]))
new SGD(layer().parameters(), { lr: 1 })
console.log(x instanceof Tensor)
`,
}
const LIB = 'es2023,esnext.disposable'
const tsc = (files, { types = 'node', lib = LIB, skipLibCheck = false } = {}) => [
  ...['tsc', '--noEmit', '--module', 'nodenext', '--target', 'es2022', '--lib', lib, '--strict', '--types', types],
  ...['--skipLibCheck', String(skipLibCheck), ...files],
]
const compiled = (typescript) => ({
  dependencies: { typescript, '@types/node': '20.19.43' },
  files: FILES,
  runs: [tsc(Object.keys(FILES))],
})
const inRunner = (dependencies, runner, options) => ({
  dependencies: { typescript: '5.9.3', '@types/node': '22.20.5', ...dependencies },
  files: { 'matchers.mts': matchers(runner), 'matchers.cts': matchers(runner) },
  runs: [tsc(['matchers.mts', 'matchers.cts'], options)],
})

export const typeProjects = (tarball) => ({
  'typescript-5.4': compiled('5.4.5'),
  'typescript-5.9': compiled('5.9.3'),
  'typescript-7.0': compiled('7.0.2'),
  'types-of-jest': inRunner({ '@types/jest': '30.0.0' }, null, { types: 'node,jest' }),
  // Their own declarations need the DOM's.
  'types-of-vitest-4': inRunner({ vitest: '4.1.12' }, 'vitest', { lib: `${LIB},dom`, skipLibCheck: true }),
  'types-of-vitest-5': inRunner({ vitest: '5.1.2' }, 'vitest', { lib: `${LIB},dom`, skipLibCheck: true }),
  'types-of-bun': inRunner({ '@types/bun': '1.4.5' }, 'bun:test', { types: 'bun', skipLibCheck: true }),
  'are-the-types-wrong': { dependencies: { '@arethetypeswrong/cli': '0.18.5' }, files: {}, runs: [['attw', tarball]] },
})
