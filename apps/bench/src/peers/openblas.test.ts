/** The core that the bench sets for OpenBLAS, by the processor's flags, and how it reads what OpenBLAS took. */
import { expect, test } from '@jest/globals'
import { coreTaken, openblasCore, openblasEnv } from './openblas.js'

const HASWELL = 'fpu sse2 ssse3 fma avx avx2 bmi2'
const SKYLAKEX = `${HASWELL} avx512f avx512dq avx512cd avx512bw avx512vl avx512_vnni`

test.each([
  ['avx512', SKYLAKEX, 'SKYLAKEX'],
  // Knights Landing has AVX-512 without these.
  ['avx512 in part', `${HASWELL} avx512f avx512cd avx512er avx512pf`, 'HASWELL'],
  ['avx2', HASWELL, 'HASWELL'],
  ['avx2 without fma', 'fpu avx avx2', null],
  ['none of them', 'fpu sse2 avx', null],
  ['nothing known', '', null],
])('%s', (_, flags, core) => {
  expect(openblasCore(flags)).toBe(core)
})

test('the user’s own choice counts, and the rest of the environment stays', () => {
  expect(openblasEnv({ A: '1' }, SKYLAKEX)).toEqual({ A: '1', OPENBLAS_CORETYPE: 'SKYLAKEX', OPENBLAS_VERBOSE: '2' })
  expect(openblasEnv({ OPENBLAS_CORETYPE: 'ZEN', OPENBLAS_VERBOSE: '0' }, SKYLAKEX)).toEqual({
    OPENBLAS_CORETYPE: 'ZEN',
    OPENBLAS_VERBOSE: '0',
  })
  expect(openblasEnv({}, '')).toEqual({ OPENBLAS_VERBOSE: '2' })
})

test('what it took is read from its own line alone', () => {
  expect(coreTaken('a warning\nCore: SkylakeX\nCore: SkylakeX\n')).toBe('SkylakeX')
  // The rest of the line has not come yet.
  expect(coreTaken('Core: Sky')).toBeNull()
  expect(coreTaken('no Core: here')).toBeNull()
})
