// biome-ignore-all lint/suspicious/noTsIgnore: where the runner is installed no error occurs
// biome-ignore-all lint/suspicious/noExplicitAny: the parameters of a declaration that is merged must be the runner's
// biome-ignore-all lint/complexity/noBannedTypes: the same
/**
 * The door `postgrad/testing/matchers`: `expect.extend(matchers)`. Kept apart from `postgrad/testing`, which needs no test runner.
 *
 * Note [Types of a runner]: each declares its matchers somewhere else, and none of them need be installed. An augmentation of a module that is not there is an
 * error, which is passed over here; where it is there, it holds.
 */
import type { PostgradMatchers } from '@postgrad/testing'

export { type MatcherResult, matchers, type PostgradMatchers } from '@postgrad/testing'

declare global {
  // vitest's `Matchers` has other type parameters from its fifth version on; its `expect` has all of this one's, in every version.
  namespace Chai {
    interface Assertion extends PostgradMatchers<void> {}
  }
  namespace jest {
    interface Matchers<R, T = {}> extends PostgradMatchers<R> {}
  }
}

/** @ts-ignore: @jest/globals has them here */
declare module 'expect' {
  interface Matchers<R extends void | Promise<void>, T = unknown> extends PostgradMatchers<R> {}
}

/** @ts-ignore */
declare module 'bun:test' {
  interface Matchers<T> extends PostgradMatchers<void> {}
}
