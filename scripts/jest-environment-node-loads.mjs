/**
 * Jest's node environment for tests that Node itself loads (`jest-runtime.cjs`): jest and `expect` run in a context of their own, tests in that of the process,
 * where they reach the former by `jest-globals.mjs`. Both have the same built-in types, as `expect` compares by them.
 */
import asyncHooks from 'node:async_hooks'
import Environment from './jest-environment.mjs'

/** Beyond what its base shares; tests throw errors, and make what `expect` compares. */
const SHARED = [
  ...['Object', 'Function', 'Array', 'String', 'Number', 'Boolean', 'BigInt', 'Symbol', 'Date', 'RegExp', 'Promise'],
  ...['Error', 'TypeError', 'RangeError', 'SyntaxError', 'AggregateError'],
]

/** As Node has them. Jest looks for source maps, of which there are none here, and keeps a hundred lines: a tenth of the time of tests that fail on purpose. */
const { prepareStackTrace, stackTraceLimit } = Error

/**
 * Jest makes one for each file and leaves it on, and every promise of the process then pays for each of them: a tenth of the time of a process that runs many files. From Node
 * 24 on they cost promises nothing, and the class cannot be replaced.
 */
const left = []
const isReplaceable = Object.getOwnPropertyDescriptor(asyncHooks, 'AsyncLocalStorage').writable === true
const { AsyncLocalStorage } = asyncHooks
class Noted extends AsyncLocalStorage {
  constructor(...args) {
    super(...args)
    left.push(this)
  }
}

export default class NodeLoadsEnvironment extends Environment {
  constructor(config, context) {
    super(config, context)
    for (const name of SHARED) this.global[name] = globalThis[name]
    globalThis[Symbol.for('postgrad.jest')] = this
    // The library asks it which test runs.
    Object.defineProperty(globalThis, 'expect', { configurable: true, get: () => this.global.expect })
  }

  async setup() {
    await super.setup()
    Object.assign(Error, { prepareStackTrace, stackTraceLimit })
    if (isReplaceable) asyncHooks.AsyncLocalStorage = Noted
  }

  /** Jest has loaded what it needs; the rest is the tests' own. */
  loadsTests() {
    if (isReplaceable) asyncHooks.AsyncLocalStorage = AsyncLocalStorage
  }

  async teardown() {
    for (const storage of left.splice(0)) storage.disable()
    await super.teardown()
  }
}
