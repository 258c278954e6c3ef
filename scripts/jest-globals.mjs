/** `@jest/globals` in `bundled-tree.mjs`, where Node loads the tests (`jest-runtime.cjs`): the globals that jest has made for the test file that runs. */
const environment = () => globalThis[Symbol.for('postgrad.jest')]

/** A module of shared tests is loaded once and serves several files, each with functions of its own. */
function current(name) {
  const now = () => environment().global[name]
  return new Proxy(() => {}, {
    apply: (_, self, args) => Reflect.apply(now(), self, args),
    get: (_, key) => now()[key],
    has: (_, key) => key in now(),
  })
}

export const [describe, expect, test, beforeAll, beforeEach, afterAll, afterEach] = [
  ...['describe', 'expect', 'test', 'beforeAll', 'beforeEach', 'afterAll', 'afterEach'],
].map(current)

export const jest = { spyOn: (...args) => environment().moduleMocker.spyOn(...args) }
