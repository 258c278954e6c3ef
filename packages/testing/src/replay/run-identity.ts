/** Which test a run belongs to, if the test runner says so: jest and vitest do. The token of a failed run has it. */
import { basename } from 'node:path'
import { now } from '@postgrad/base/internal'
import type { TestIdentity } from './replay-token.js'
import { TIME_MS } from './shrink.js'

interface ExpectState {
  readonly currentTestName?: string
  readonly testPath?: string
}

/** How many runs each test has made: of this copy of the module, which test runners load again for each file. */
const tests = new Map<string, { runs: number; startMs: number; attempt: string }>()

/** The identity of the next run of the test that runs now. `name`: what the program calls it, where no test runner does. */
export function nextRun(name = ''): TestIdentity {
  const state = expectState()
  const test = [state.currentTestName ?? '', name].filter((part) => part !== '').join(' › ')
  const file = state.testPath === undefined ? '' : basename(state.testPath)
  return { kind: 'test', name: test, file, run: began(`${file} ${test}`).runs++ }
}

/** Notes that the test which runs now has begun: for code that takes long before the first run. */
export function noteTest(): void {
  const { currentTestName = '', testPath } = expectState()
  began(`${testPath === undefined ? '' : basename(testPath)} ${currentTestName}`)
}

/** A test that the runner tries again has its whole time again. */
function began(key: string): { runs: number; startMs: number } {
  const attempt = attemptNow()
  const known = tests.get(key) ?? { runs: 0, startMs: now(), attempt }
  if (known.attempt !== attempt) Object.assign(known, { startMs: now(), attempt })
  tests.set(key, known)
  return known
}

/** So much of it may be used when shrinking ends: the last run may take longer, and a failure has to be written. */
const USABLE = 0.7

/** How long a failed run of this test may be made smaller, in ms, so that the test's own timeout does not end it before. */
export function shrinkTimeMs({ file, name }: Pick<TestIdentity, 'file' | 'name'>, limitMs = testLimitMs()): number {
  const startMs = tests.get(`${file} ${name}`)?.startMs ?? now()
  return Math.min(TIME_MS, Math.max(0, USABLE * limitMs - (now() - startMs)))
}

/**
 * When the timeout of the test that runs now ends it, on the clock of `now`, and how long it is. Infinity where no runner says, and for tests that run
 * at the same time: of these the runner does not say which one runs now. The test began at its first run or earlier, so that it ends at this time or before.
 */
export function testEnd({ file, name }: Pick<TestIdentity, 'file' | 'name'>): { readonly endMs: number; readonly limitMs: number } {
  const { jest, vitest } = runnerState()
  const isConcurrent = (jest?.currentlyRunningTest?.concurrent ?? vitest?.current?.concurrent) === true
  const limitMs = isConcurrent ? Number.POSITIVE_INFINITY : testLimitMs()
  return { endMs: (tests.get(`${file} ${name}`)?.startMs ?? now()) + limitMs, limitMs }
}

/** Which attempt of which test runs now, as far as the runner says. */
function attemptNow(): string {
  const { jest, vitest } = runnerState()
  const { startedAt, invocations } = jest?.currentlyRunningTest ?? {}
  const { startTime, retryCount, repeatCount } = vitest?.current?.result ?? {}
  return [startedAt, invocations, startTime, retryCount, repeatCount].join(' ')
}

/** The timeout of the test that runs now, in ms; Infinity where no runner says one, as in a script that runs many simulations one after another. */
export function testLimitMs(): number {
  const { jest, vitest } = runnerState()
  const told = jest?.currentlyRunningTest?.timeout ?? jest?.testTimeout ?? vitest?.current?.timeout ?? vitest?.config?.testTimeout
  return told === 0 || told === undefined ? Number.POSITIVE_INFINITY : told
}

function runnerState(): { readonly jest: JestState | undefined; readonly vitest: VitestState | undefined } {
  const world = globalThis as unknown as Record<symbol | string, unknown>
  const circus = Object.getOwnPropertySymbols(world).find(({ description }) => description === 'JEST_STATE_SYMBOL')
  const jest = circus === undefined ? undefined : (world[circus] as JestState | undefined)
  return { jest, vitest: world.__vitest_worker__ as VitestState | undefined }
}

interface JestState {
  readonly testTimeout?: number
  readonly currentlyRunningTest?: {
    readonly timeout?: number
    readonly concurrent?: boolean
    readonly startedAt?: number | null
    readonly invocations?: number
  } | null
}

interface VitestState {
  readonly current?: VitestTask
  readonly filepath?: string
  readonly config?: { readonly testTimeout?: number }
}

/** The test's state in `expect`. Both runners leave it where every copy of theirs finds it; vitest says more in its worker's state. */
function expectState(): ExpectState {
  const world = globalThis as unknown as Record<symbol | string, unknown>
  const jest = world[Symbol.for('$$jest-matchers-object')] as { readonly state?: ExpectState } | undefined
  if (jest?.state?.currentTestName !== undefined) return jest.state
  const expect = world.expect as { getState?(): ExpectState } | undefined
  const state = typeof expect?.getState === 'function' ? expect.getState() : undefined
  if (state?.currentTestName !== undefined) return state
  const { vitest } = runnerState()
  if (vitest?.current === undefined) return {}
  return { currentTestName: fullName(vitest.current), ...(vitest.filepath === undefined ? {} : { testPath: vitest.filepath }) }
}

interface VitestTask {
  readonly name: string
  readonly timeout?: number
  readonly concurrent?: boolean
  readonly result?: { readonly startTime?: number; readonly retryCount?: number; readonly repeatCount?: number }
  readonly suite?: VitestTask
}

function fullName({ name, suite }: VitestTask): string {
  return suite === undefined ? name : `${fullName(suite)} ${name}`.trim()
}
