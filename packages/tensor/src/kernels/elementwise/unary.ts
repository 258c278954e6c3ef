/** The element-wise functions of one argument. NaN passes through. Neighbour: `activations.ts`, those with slopes of their own, which are rows of this table too. */
import { ACTIVATIONS } from './activations.js'
import { exportsOf, type UnaryDefinition } from './definition.js'
import { ERFC, erf } from './erf.js'
import { absF32, absWide, negF32, negWide, reluF32, reluWide, sqrtF32, sqrtWide } from './loops.js'
import { intPower, power, roundHalfEven } from './scalars.js'

export const UNARY = {
  neg: {
    lanes: 'a f32x4.neg',
    js: (x) => -x,
    int32: 'js',
    loops: { float32: negF32, float64: negWide, int32: negWide },
    simd: exportsOf('neg'),
    gpujs: 'return -v;',
  },
  exp: { js: (x) => Math.exp(x), wasm: 'exp_f32', wasm64: 'exp_f64', gpujs: 'return Math.exp(v);' },
  log: { js: (x) => Math.log(x), wasm: 'log_f32', wasm64: 'log_f64', gpujs: 'return Math.log(v);' },
  sqrt: {
    lanes: 'a f32x4.sqrt',
    js: (x) => Math.sqrt(x),
    loops: { float32: sqrtF32, float64: sqrtWide },
    simd: { float32: 'sqrt_f32', float64: 'sqrt_f64' },
    gpujs: 'return Math.sqrt(v);',
  },
  sin: { js: (x) => Math.sin(x), wasm: 'sin_f32', wasm64: 'sin_f64', gpujs: 'return Math.sin(v);' },
  cos: { js: (x) => Math.cos(x), wasm: 'cos_f32', wasm64: 'cos_f64', gpujs: 'return Math.cos(v);' },
  tanh: { js: (x) => Math.tanh(x), wasm: 'tanh_f32', wasm64: 'tanh_f64', gpujs: 'return Math.tanh(v);' },
  sigmoid: { js: (x) => 1 / (1 + Math.exp(-x)), wasm: 'sigmoid_f32', wasm64: 'sigmoid_f64', gpujs: 'return 1 / (1 + Math.exp(-v));' },
  relu: {
    lanes: 'a 0 f32x4.pmax 0 f32x4.add',
    // Of NaN and 0, Math.max gives NaN.
    js: (x) => Math.max(x, 0),
    int32: 'js',
    loops: { float32: reluF32, float64: reluWide, int32: reluWide },
    simd: exportsOf('relu'),
    gpujs: 'return Math.max(v, 0);',
  },
  abs: {
    lanes: 'a f32x4.abs',
    js: (x) => Math.abs(x),
    int32: 'js',
    loops: { float32: absF32, float64: absWide, int32: absWide },
    simd: exportsOf('abs'),
    gpujs: 'return Math.abs(v);',
  },
  sign: {
    lanes: 'a 0 f32x4.gt 1 v128.and a 0 f32x4.lt 1 v128.and f32x4.sub',
    js: (x) => (x > 0 ? 1 : x < 0 ? -1 : 0),
    int32: 'js',
    bool: 'js',
    simd: exportsOf('sign'),
    gpujs: 'let s = 0; if (v > 0) { s = 1; } if (v < 0) { s = -1; } return s;',
  },
  /** The exponent is p0. */
  pow: {
    js: (x, exponent) => power(x, exponent),
    int32: (x, exponent) => intPower(x, exponent),
    wasm: 'pow_f32',
    lanesOfSquare: 'a a f32x4.mul',
    square: { float32: 'mul_f32', float64: 'mul_f64' },
    // As PyTorch: a power of ±0.5 is the square root; 1 to any power, NaN as well, is 1, and -1 to an infinite one (in JavaScript neither is).
    gpujs: `if (p0 == 0.5) { return Math.sqrt(v); } if (p0 == -0.5) { return 1 / Math.sqrt(v); }
    if (v == 1) { return 1; } if (v == -1 && Math.abs(p0) > 3.4028235e38) { return 1; } return Math.pow(v, p0);`,
  },
  /** Between p0 and p1 (±Infinity: no bound). */
  clamp: {
    lanes: 'a p0 f32x4.max p1 f32x4.min',
    js: (x, low, high) => Math.min(Math.max(x, low), high),
    int32: 'js',
    simd: exportsOf('clamp'),
    gpujs: 'return Math.min(Math.max(v, p0), p1);',
  },
  floor: {
    lanes: 'a f32x4.floor',
    js: (x) => Math.floor(x),
    wasm: 'floor_f32',
    simd: { float64: 'floor_f64' },
    gpujs: 'return Math.floor(v);',
  },
  ceil: { lanes: 'a f32x4.ceil', js: (x) => Math.ceil(x), wasm: 'ceil_f32', simd: { float64: 'ceil_f64' }, gpujs: 'return Math.ceil(v);' },
  /** To even at halves. */
  round: {
    lanes: 'a f32x4.nearest',
    js: (x) => roundHalfEven(x),
    wasm: 'round_f32',
    simd: { float64: 'round_f64' },
    // Rounds the absolute value. A zero is returned as it is, so it keeps its sign.
    gpujs: `if (v == 0) { return v; }
    const a = Math.abs(v);
    const f = Math.floor(a);
    let r = f;
    if (a - f > 0.5) { r = f + 1; }
    if (a - f == 0.5 && f - 2 * Math.floor(f / 2) != 0) { r = f + 1; }
    if (v < 0) { return -r; }
    return r;`,
  },
  trunc: {
    lanes: 'a f32x4.trunc',
    js: (x) => Math.trunc(x),
    wasm: 'trunc_f32',
    simd: { float64: 'trunc_f64' },
    gpujs: 'return Math.trunc(v);',
  },
  reciprocal: {
    lanes: '1 a f32x4.div',
    js: (x) => 1 / x,
    wasm: 'reciprocal_f32',
    simd: { float64: 'reciprocal_f64' },
    gpujs: 'return 1 / v;',
  },
  rsqrt: {
    lanes: '1 a f32x4.sqrt f32x4.div',
    js: (x) => 1 / Math.sqrt(x),
    wasm: 'rsqrt_f32',
    simd: { float64: 'rsqrt_f64' },
    gpujs: 'return 1 / Math.sqrt(v);',
  },
  log1p: { js: (x) => Math.log1p(x), wasm: 'log1p_f32', gpujs: 'return Math.log1p(v);' },
  expm1: { js: (x) => Math.expm1(x), wasm: 'expm1_f32', gpujs: 'return Math.expm1(v);' },
  log2: { js: (x) => Math.log2(x), wasm: 'log2_f32', gpujs: 'return Math.log2(v);' },
  log10: { js: (x) => Math.log10(x), wasm: 'log10_f32', gpujs: 'return Math.log10(v);' },
  exp2: { js: (x) => 2 ** x, wasm: 'exp2_f32', gpujs: 'return Math.pow(2, v);' },
  tan: { js: (x) => Math.tan(x), wasm: 'tan_f32', gpujs: 'return Math.tan(v);' },
  sinh: { js: (x) => Math.sinh(x), wasm: 'sinh_f32', gpujs: 'return Math.sinh(v);' },
  cosh: { js: (x) => Math.cosh(x), wasm: 'cosh_f32', gpujs: 'return Math.cosh(v);' },
  asin: { js: (x) => Math.asin(x), wasm: 'asin_f32', gpujs: 'return Math.asin(v);' },
  acos: { js: (x) => Math.acos(x), wasm: 'acos_f32', gpujs: 'return Math.acos(v);' },
  atan: { js: (x) => Math.atan(x), wasm: 'atan_f32', gpujs: 'return Math.atan(v);' },
  erf: {
    js: (x) => erf(x),
    wasm: 'erf_f32',
    gpujs: `const a = Math.abs(v);
    ${ERFC}
    if (a < 1) { return v * series; }
    if (v < 0) { return tail - 1; }
    return 1 - tail;`,
  },
  ...ACTIVATIONS,
} satisfies Readonly<Record<string, UnaryDefinition>>
