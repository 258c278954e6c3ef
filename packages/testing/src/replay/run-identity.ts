/** Which test a run belongs to, as far as the test runner says: jest and vitest do. It stands in the token of a run that failed. */
import { basename } from 'node:path'
import type { TestIdentity } from './replay-token.js'

interface ExpectState {
  readonly currentTestName?: string
  readonly testPath?: string
}

/** How many runs each test has made: of this copy of the module, which test runners load again for each file. */
const runs = new Map<string, number>()

/** The identity of the next run of the test that runs now. `name`: what the program calls it, where no test runner does. */
export function nextRun(name = ''): TestIdentity {
  const state = expectState()
  const test = [state.currentTestName ?? '', name].filter((part) => part !== '').join(' › ')
  const file = state.testPath === undefined ? '' : basename(state.testPath)
  const key = `${file} ${test}`
  const run = runs.get(key) ?? 0
  runs.set(key, run + 1)
  return { kind: 'test', name: test, file, run }
}

/** What `expect` knows of the test. Both runners leave it where every copy of theirs finds it; vitest says more in its worker's state. */
function expectState(): ExpectState {
  const world = globalThis as unknown as Record<symbol | string, unknown>
  const jest = world[Symbol.for('$$jest-matchers-object')] as { readonly state?: ExpectState } | undefined
  if (jest?.state?.currentTestName !== undefined) return jest.state
  const expect = world.expect as { getState?(): ExpectState } | undefined
  const state = typeof expect?.getState === 'function' ? expect.getState() : undefined
  if (state?.currentTestName !== undefined) return state
  const vitest = world.__vitest_worker__ as { readonly current?: VitestTask; readonly filepath?: string } | undefined
  if (vitest?.current === undefined) return {}
  return { currentTestName: fullName(vitest.current), ...(vitest.filepath === undefined ? {} : { testPath: vitest.filepath }) }
}

interface VitestTask {
  readonly name: string
  readonly suite?: VitestTask
}

function fullName({ name, suite }: VitestTask): string {
  return suite === undefined ? name : `${fullName(suite)} ${name}`.trim()
}
