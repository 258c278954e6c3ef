/** The element-wise functions of two arguments. The output has the dtype of the inputs; on bool a sum is or, a product and. Neighbour: `compare.ts`. */
import { BITS, type BinaryDefinition, DIVIDES_REAL, exportsOf } from './definition.js'
import * as loops from './loops.js'
import { cPower, floorDivide, intPower, REST, remainder } from './scalars.js'

export const BINARY = {
  add: {
    lanes: 'a b f32x4.add',
    js: (a, b) => a + b,
    int32: 'js',
    bool: (a, b) => a | b,
    loops: { float32: loops.addF32, float64: loops.addWide, int32: loops.addWide, bool: loops.either },
    simd: exportsOf('add'),
    gpujs: 'return va + vb;',
    gpujsBool: 'return Math.max(va, vb);',
  },
  sub: {
    lanes: 'a b f32x4.sub',
    js: (a, b) => a - b,
    int32: 'js',
    loops: { float32: loops.subF32, float64: loops.subWide, int32: loops.subWide },
    simd: exportsOf('sub'),
    gpujs: 'return va - vb;',
  },
  mul: {
    lanes: 'a b f32x4.mul',
    js: (a, b) => a * b,
    int32: (a, b) => Math.imul(a, b),
    bool: (a, b) => a & b,
    loops: { float32: loops.mulF32, float64: loops.mulWide, int32: loops.mulI32, bool: loops.both },
    simd: exportsOf('mul'),
    gpujs: 'return va * vb;',
  },
  div: {
    lanes: 'a b f32x4.div',
    js: (a, b) => a / b,
    int32: DIVIDES_REAL,
    loops: { float32: loops.divF32, float64: loops.divWide },
    simd: { float32: 'div_f32', float64: 'div_f64' },
    gpujs: 'return va / vb;',
  },
  /** NaN if either is NaN, and so of `minimum`. */
  maximum: {
    lanes: 'a b f32x4.max',
    js: (a, b) => Math.max(a, b),
    int32: 'js',
    bool: (a, b) => a | b,
    loops: { float32: loops.maximumF32, float64: loops.maximumWide, int32: loops.maximumWide, bool: loops.either },
    simd: exportsOf('maximum'),
    gpujs: 'return Math.max(va, vb);',
  },
  minimum: {
    lanes: 'a b f32x4.min',
    js: (a, b) => Math.min(a, b),
    int32: 'js',
    bool: (a, b) => a & b,
    loops: { float32: loops.minimumF32, float64: loops.minimumWide, int32: loops.minimumWide, bool: loops.both },
    simd: exportsOf('minimum'),
    gpujs: 'return Math.min(va, vb);',
  },
  power: {
    js: (x, exponent) => cPower(x, exponent),
    int32: (x, exponent) => (exponent >= 0 ? intPower(x, exponent) : x === 1 ? 1 : x === -1 ? (exponent % 2 === 0 ? 1 : -1) : 0),
    wasm: 'power_f32',
    // 1 to any power is 1, and -1 to an infinite one.
    gpujs: 'if (va == 1) { return 1; } if (va == -1 && Math.abs(vb) > 3.4028235e38) { return 1; } return Math.pow(va, vb);',
  },
  /** With the sign of b. Of integers by 0 this and the next two give 0, where PyTorch throws. */
  remainder: {
    js: (a, b) => remainder(a, b),
    int32: (a, b) => (b === 0 ? 0 : remainder(a, b)),
    simd: { float32: 'modulo_f32' },
    gpujs: `${REST}
    if (r != 0 && ((vb < 0 && r > 0) || (vb > 0 && r < 0))) { r = r + vb; }
    return r;`,
  },
  /** With the sign of a. */
  fmod: {
    js: (a, b) => a % b,
    int32: (a, b) => (b === 0 ? 0 : a % b),
    simd: { float32: 'fmod_f32' },
    gpujs: `${REST}
    return r;`,
  },
  /** The quotient that goes with `remainder`. */
  floorDivide: {
    js: (a, b) => floorDivide(a, b),
    int32: (a, b) => (b === 0 ? 0 : Math.floor(a / b)),
    simd: { float32: 'floor_divide_f32' },
    gpujs: `if (vb == 0) { return va / vb; }
    ${REST}
    let q = (va - r) / vb;
    if (r != 0 && ((vb < 0 && r > 0) || (vb > 0 && r < 0))) { q = q - 1; }
    if (q == 0) { if (va / vb < 0) { return -0.0 * 1; } return 0 * (va / vb); }
    const down = Math.floor(q);
    if (q - down > 0.5) { return down + 1; }
    return down;`,
  },
  atan2: { js: (a, b) => Math.atan2(a, b), wasm: 'atan2_f32', gpujs: 'return Math.atan2(va, vb);' },
  bitwiseAnd: { js: BITS, int32: (a, b) => a & b, bool: (a, b) => a & b, loops: { bool: loops.both }, gpujsBool: 'return va * vb;' },
  bitwiseOr: {
    js: BITS,
    int32: (a, b) => a | b,
    bool: (a, b) => a | b,
    loops: { bool: loops.either },
    gpujsBool: 'return Math.max(va, vb);',
  },
  bitwiseXor: {
    js: BITS,
    int32: (a, b) => a ^ b,
    bool: (a, b) => a ^ b,
    loops: { bool: loops.differ },
    gpujsBool: 'let t = 0; if (va != vb) { t = 1; } return t;',
  },
} satisfies Readonly<Record<string, BinaryDefinition>>
