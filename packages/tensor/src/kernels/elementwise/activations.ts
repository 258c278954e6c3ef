/**
 * Rows of activations and of their derivatives, the gradient times the slope. The first three compute the slope from the activation's result, the
 * others from its argument. Parameters: leakyRelu's slope, elu's alpha, softplus's beta are p0, softplus's threshold is p1.
 */
import type { GradDefinition, UnaryDefinition } from './definition.js'
import { ERFC, erfc } from './erf.js'
import { reluGradF32, sigmoidGradF32, tanhGradF32 } from './loops.js'

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))
const SCALE = Math.sqrt(2 / Math.PI)

export const ACTIVATIONS = {
  leakyRelu: {
    lanes: 'a a p0 f32x4.mul a 0 f32x4.gt v128.bitselect',
    js: (x, slope) => (x > 0 ? x : x * slope),
    wasm: 'leaky_relu_f32',
    gpujs: 'if (v > 0) { return v; } return v * p0;',
  },
  gelu: {
    // x Φ(x); by erfc, so that the left tail keeps its digits.
    js: (x) => 0.5 * x * erfc(-x * Math.SQRT1_2),
    wasm: 'gelu_f32',
    gpujs: `const w = v * 0.7071067811865476;
    const a = Math.abs(w);
    ${ERFC}
    if (a < 1) { return 0.5 * v * (1 + w * series); }
    if (v < 0) { return 0.5 * v * tail; }
    return 0.5 * v * (2 - tail);`,
  },
  geluTanh: {
    // x (1 + tanh u) / 2 is x / (1 + e⁻²ᵘ).
    js: (x) => x / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x))),
    wasm: 'gelu_tanh_f32',
    gpujs: 'return v / (1 + Math.exp(-1.5957691216057308 * (v + 0.044715 * v * v * v)));',
  },
  silu: { js: (x) => x / (1 + Math.exp(-x)), wasm: 'silu_f32', gpujs: 'return v / (1 + Math.exp(-v));' },
  softplus: {
    js: (x, beta, threshold) => (x * beta > threshold ? x : Math.log1p(Math.exp(x * beta)) / beta),
    wasm: 'softplus_f32',
    gpujs: 'if (v * p0 > p1) { return v; } return Math.log1p(Math.exp(v * p0)) / p0;',
  },
  elu: {
    js: (x, alpha) => (x <= 0 ? alpha * Math.expm1(x) : x),
    wasm: 'elu_f32',
    gpujs: 'if (v <= 0) { return p0 * Math.expm1(v); } return v;',
  },
} satisfies Readonly<Record<string, UnaryDefinition>>

export const GRADIENTS = {
  reluBackward: {
    lanes: 'a b 0 f32x4.le v128.andnot',
    slope: (y) => (y <= 0 ? 0 : 1),
    gated: true,
    wasm: 'relu_backward_f32',
    loop: reluGradF32,
    gpujs: 'if (v <= 0) { return 0; } return vg;',
  },
  tanhBackward: {
    lanes: 'a 1 b b f32x4.mul f32x4.sub f32x4.mul',
    slope: (y) => 1 - y * y,
    wasm: 'tanh_backward_f32',
    loop: tanhGradF32,
    gpujs: 'return vg * (1 - v * v);',
  },
  sigmoidBackward: {
    lanes: 'a b 1 b f32x4.sub f32x4.mul f32x4.mul',
    slope: (y) => y * (1 - y),
    wasm: 'sigmoid_backward_f32',
    loop: sigmoidGradF32,
    gpujs: 'return vg * (v * (1 - v));',
  },
  leakyReluBackward: {
    lanes: 'a a p0 f32x4.mul b 0 f32x4.gt v128.bitselect',
    slope: (x, slope) => (x > 0 ? 1 : slope),
    wasm: 'leaky_relu_backward_f32',
    gpujs: 'if (v > 0) { return vg; } return vg * p0;',
  },
  eluBackward: {
    slope: (x, alpha) => (x <= 0 ? alpha * Math.exp(x) : 1),
    wasm: 'elu_backward_f32',
    gpujs: 'if (v <= 0) { return vg * (p0 * Math.exp(v)); } return vg;',
  },
  siluBackward: {
    slope: (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    wasm: 'silu_backward_f32',
    gpujs: 'const s = 1 / (1 + Math.exp(-v)); return vg * (s * (1 + v * (1 - s)));',
  },
  softplusBackward: {
    slope: (x, beta, threshold) => (x * beta > threshold ? 1 : sigmoid(x * beta)),
    wasm: 'softplus_backward_f32',
    gpujs: 'if (v * p0 > p1) { return vg; } return vg / (1 + Math.exp(-v * p0));',
  },
  geluBackward: {
    slope: (x) => 0.5 * erfc(-x * Math.SQRT1_2) + (x * Math.exp(-0.5 * x * x)) / Math.sqrt(2 * Math.PI),
    wasm: 'gelu_backward_f32',
    gpujs: `const w = v * 0.7071067811865476;
    const a = Math.abs(w);
    ${ERFC}
    let cdf = 0.5 * tail;
    if (v >= 0) { cdf = 1 - 0.5 * tail; }
    if (a < 1) { cdf = 0.5 + 0.5 * w * series; }
    return vg * (cdf + v * Math.exp(-0.5 * v * v) * 0.3989422804014327);`,
  },
  geluTanhBackward: {
    slope: (x) => {
      if (Math.abs(x) > 20) return x > 0 ? 1 : 0 // in float32 the cube would overflow
      const s = sigmoid(2 * SCALE * (x + 0.044715 * x ** 3))
      return s + 2 * x * s * (1 - s) * SCALE * (1 + 3 * 0.044715 * x * x)
    },
    wasm: 'gelu_tanh_backward_f32',
    gpujs: `if (v > 20) { return vg; }
    if (v < -20) { return 0 * vg; }
    const s = 1 / (1 + Math.exp(-1.5957691216057308 * (v + 0.044715 * v * v * v)));
    return vg * (s + v * s * (1 - s) * 1.5957691216057308 * (1 + 0.134145 * v * v));`,
  },
} satisfies Readonly<Record<string, GradDefinition>>
