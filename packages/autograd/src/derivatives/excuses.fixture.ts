/** The differences from PyTorch that `packages/tensor/KERNELS.md` lists and random calls meet (`fuzz.soak.test.ts`). */
import type { GoldenCase } from '@postgrad/tensor/suite'

interface Excuse {
  /** Those of the row or of the sentence. */
  readonly words: string
  /** All where there are none. */
  readonly ops?: readonly string[]
  /** Its message matches this. */
  readonly says: RegExp
  readonly if?: (args: string, c: GoldenCase) => boolean
}

const EXTREME = /NaN|Infinity|e[+-]?\d{2}|\d{15}/
const hasNaN = (args: string) => args.includes('NaN')
/** Infinite, NaN, or so large or small that a product leaves the range. */
const isExtreme = (args: string) => EXTREME.test(args)
/** Numbers from 1e15 on, whose sums lose the digits of others, and a gradient that is a sum since its tensor was broadcast. */
const isSumOfLarge = (args: string, c: GoldenCase) =>
  /e\+?(1[5-9]|[2-9]\d|\d{3})|\d{16}/.test(args) && c.grads!.some((g) => g !== null && `${g.shape}` !== `${c.out?.shape}`)

export const EXCUSES: readonly Excuse[] = [
  { words: 'log1p of 3.4e38 and of 1.7e308', ops: ['log1p'], says: /^out: .*expected Infinity/ },
  {
    words: 'remainder, fmod, floorDivide: a / b beyond the range',
    ops: ['remainder', 'fmod', 'floorDivide'],
    says: /^out: .*expected NaN/,
  },
  { words: "geluTanh's derivative beyond ±20", ops: ['gelu'], says: /^gradient .*expected NaN/, if: isExtreme },
  { words: 'mish: gradient where g · x is out of range', ops: ['mish'], says: /^gradient .*got NaN$/, if: isExtreme },
  { words: "elu's derivative at NaN", ops: ['elu'], says: /^gradient .*expected NaN/, if: hasNaN },
  { words: 'hardtanh, relu6: slope at NaN', ops: ['hardtanh', 'relu6'], says: /^gradient .*expected -?0,/, if: hasNaN },
  { words: 'the gradient of amax and amin over all', ops: ['amax', 'amin'], says: /^gradient /, if: hasNaN },
  { words: 'prod, cumprod: gradients', ops: ['prod', 'cumprod'], says: /^gradient /, if: isExtreme },
  { words: 'addcmul, addcdiv, lerp: a product out of range', ops: ['addcmul', 'addcdiv'], says: /^(out|gradient)/, if: isExtreme },
  { words: 'addcmul, addcdiv, lerp: a product out of range', ops: ['lerp', 'addcdiv'], says: /^gradient .*(NaN|Infinity)/ },
  { words: 'atan2: gradients', ops: ['atan2'], says: /^gradient .*expected NaN/, if: isExtreme },
  { words: 'var of one element without dimensions', ops: ['var'], says: /^gradient .*expected -?Infinity, got NaN$/ },
  {
    words: 'intermediate results of float32 beyond 3.4e38',
    ops: ['prod', 'cumprod', 'sum', 'mean', 'cumsum'],
    says: /^out: /,
    if: isExtreme,
  },
  {
    words: 'intermediate results of float32 beyond 3.4e38',
    ops: ['var', 'std'],
    says: /expected (Infinity|-?0), got [-\d.e+]+$/,
    if: isExtreme,
  },
  { words: 'var, std: differences or squares out of range', ops: ['var', 'std'], says: /expected NaN, got -?Infinity$/, if: isExtreme },
  {
    words: 'PyTorch adds in float32, pairwise',
    says: /^gradient .*expected (NaN|-?\d[-+.\de]*), got -?(Infinity|\d[-+.\de]*)$/,
    if: isSumOfLarge,
  },
  { words: 'norm, p between 1 and 2, an element 0', ops: ['norm'], says: /^second gradient .*expected NaN, got -?0$/ },
  { words: 'power of two tensors at base 0', ops: ['pow'], says: /^second gradient .*expected NaN, got 0$/ },
]

/** The words of the row that excuses a difference. */
export function excuseFor(c: GoldenCase, failure: string): string | undefined {
  const args = JSON.stringify(c.args)
  return EXCUSES.find(({ ops, says, ...excuse }) => (ops?.includes(c.op) ?? true) && says.test(failure) && (excuse.if?.(args, c) ?? true))
    ?.words
}
