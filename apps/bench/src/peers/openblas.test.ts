/** The core that the bench sets for OpenBLAS, by the processor's flags, and how it reads what OpenBLAS took. */
import { expect, test } from '@jest/globals'
import { coreTaken, openblasEnv } from './openblas.js'

const SKYLAKEX = `fpu sse2 ssse3 fma avx avx2 bmi2 avx512f avx512dq avx512cd avx512bw avx512vl avx512_vnni`

test('the user’s own choice counts, and the rest of the environment stays', () => {
  const OPENBLAS_NUM_THREADS = '1'
  expect(openblasEnv({ A: '1' }, 1, SKYLAKEX)).toEqual({
    A: '1',
    OPENBLAS_CORETYPE: 'SKYLAKEX',
    OPENBLAS_VERBOSE: '2',
    OPENBLAS_NUM_THREADS,
  })
  expect(openblasEnv({ OPENBLAS_CORETYPE: 'ZEN', OPENBLAS_VERBOSE: '0' }, 1, SKYLAKEX)).toEqual({
    OPENBLAS_CORETYPE: 'ZEN',
    OPENBLAS_VERBOSE: '0',
    OPENBLAS_NUM_THREADS,
  })
  expect(openblasEnv({}, 1, '')).toEqual({ OPENBLAS_VERBOSE: '2', OPENBLAS_NUM_THREADS })
})

test('both sides have the same number of threads, whatever the shell says', () => {
  expect(openblasEnv({ OPENBLAS_NUM_THREADS: '8' }, 2, '')).toMatchObject({ OPENBLAS_NUM_THREADS: '2' })
})

test('what it took is read from its own line alone', () => {
  expect(coreTaken('a warning\nCore: SkylakeX\nCore: SkylakeX\n')).toBe('SkylakeX')
  // The rest of the line has not come yet.
  expect(coreTaken('Core: Sky')).toBeNull()
  expect(coreTaken('no Core: here')).toBeNull()
})
