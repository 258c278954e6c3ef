/** The comparisons, of all dtypes; the output is bool. */
import { type CompareDefinition, exportsOf } from './definition.js'
import { agree, differ } from './loops.js'

export const COMPARE = {
  eq: {
    lanes: 'a b f32x4.eq',
    js: (a, b) => (a === b ? 1 : 0),
    loops: { bool: agree },
    simd: exportsOf('eq'),
    gpujs: 'let t = 0; if (va == vb) { t = 1; } return t;',
  },
  ne: {
    lanes: 'a b f32x4.ne',
    js: (a, b) => (a !== b ? 1 : 0),
    loops: { bool: differ },
    simd: exportsOf('ne'),
    gpujs: 'let t = 0; if (va != vb) { t = 1; } return t;',
  },
  lt: {
    lanes: 'a b f32x4.lt',
    js: (a, b) => (a < b ? 1 : 0),
    simd: exportsOf('lt'),
    gpujs: 'let t = 0; if (va < vb) { t = 1; } return t;',
  },
  le: {
    lanes: 'a b f32x4.le',
    js: (a, b) => (a <= b ? 1 : 0),
    simd: exportsOf('le'),
    gpujs: 'let t = 0; if (va <= vb) { t = 1; } return t;',
  },
  gt: {
    lanes: 'b a f32x4.lt',
    js: (a, b) => (a > b ? 1 : 0),
    simd: exportsOf('lt'),
    swapped: true,
    gpujs: 'let t = 0; if (va > vb) { t = 1; } return t;',
  },
  ge: {
    lanes: 'b a f32x4.le',
    js: (a, b) => (a >= b ? 1 : 0),
    simd: exportsOf('le'),
    swapped: true,
    gpujs: 'let t = 0; if (va >= vb) { t = 1; } return t;',
  },
} satisfies Readonly<Record<string, CompareDefinition>>
