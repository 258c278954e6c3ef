/** The one door through which other packages reach the elements of a tensor. */
import { t } from './mutation.mjs'

const TESTS = 'packages/tensor/src/tensor/bytes.test.ts'
const DOOR = 'packages/tensor/src/tensor/bytes.ts'

export const theDoorForBytes = [
  t(
    'bytes-that-are-not-here',
    TESTS,
    'the door for bytes refuses a tensor',
    DOOR,
    'if (host !== null) return host',
    'return host!',
    'a tensor of another device has its elements read',
  ),
  t(
    'bytes-that-others-hold',
    TESTS,
    'the door for bytes gives dense elements where they lie, and a copy',
    DOOR,
    'return hostOf(x).slice(x.offset',
    'return hostOf(x).subarray(x.offset',
    'an array that a link moves is the memory of the tensor',
  ),
  t(
    'bytes-of-a-bool',
    TESTS,
    'the door for bytes writes some elements over others',
    DOOR,
    'from[start + i] === 0 ? 0 : 1',
    'from[start + i]!',
    'an element of a bool is 7',
  ),
]
