/** What an error costs. */
import { t } from './mutation.mjs'

export const whatAnErrorCosts = [
  t(
    'more-frames-always',
    'packages/base/src/program-stack.test.ts',
    'CLU-119 more frames than Node keeps',
    'packages/base/src/program-stack.ts',
    'first < 0 && frames.length > 0 && frames.length >= stackTraceLimit',
    'first !== 0',
    'each error of an installed postgrad writes 64 frames down, of which it shows ten',
  ),
  t(
    'more-frames-never',
    'packages/base/src/program-stack.test.ts',
    'CLU-119 more frames than Node keeps',
    'packages/base/src/program-stack.ts',
    'first < 0 && frames.length > 0 && frames.length >= stackTraceLimit',
    'first === -2',
    'an error from deep within postgrad shows no line of the program',
  ),
]
