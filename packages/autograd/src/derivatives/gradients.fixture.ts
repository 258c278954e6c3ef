/** The result and the gradients of a golden case as postgrad computes them, and how they differ from PyTorch's. */
import type { Tensor } from '@postgrad/tensor'
import { isFloating, isTensor } from '@postgrad/tensor/internal'
import { compare, decode, type GoldenCase, type GoldenTensor, goldenWeights } from '@postgrad/tensor/suite'
import { grad } from '../index.js'
import { operations } from '../internal.js'

export const TOLERANCE = { float32: 1e-5, float64: 1e-12 }
const calls = operations as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>

export interface Gradients {
  /** The result of the operation. */
  readonly out: unknown
  readonly tensors: readonly Tensor[]
  /** By tensor; null where none is wanted or none arrived. */
  readonly found: readonly (Tensor | null)[]
}

type Pass = (outputs: readonly Tensor[], inputs: readonly Tensor[], gradOutputs: readonly Tensor[]) => readonly (Tensor | null)[]

export function gradientsOf(c: GoldenCase, pass: Pass): Gradients {
  const args = c.args.map((arg) => decode(arg, []))
  const tensors = args.flat().filter((arg) => isTensor(arg))
  for (const x of tensors) if (isFloating(x.dtype)) x.requiresGrad_()
  const out = calls[c.op]!(...args)
  const parts: readonly Tensor[] = isTensor(out) ? [out] : Object.values(out as Readonly<Record<string, Tensor>>)
  const outputs = parts.filter((part) => part.requiresGrad)
  const inputs = tensors.filter((x) => x.requiresGrad)
  const found = outputs.length === 0 ? [] : pass(outputs, inputs, outputs.map(goldenWeights))
  return { out, tensors, found: tensors.map((x) => found[inputs.indexOf(x)] ?? null) }
}

/** `grad` computes them: it writes to no `.grad`. */
export function byGrad(c: GoldenCase): Gradients {
  return gradientsOf(c, (outputs, inputs, gradOutputs) => grad(outputs, inputs, { gradOutputs, allowUnused: true }))
}

/** The second derivatives: the gradients of the gradients, weighted and summed. */
export function byGradTwice(c: GoldenCase): Gradients {
  return gradientsOf(c, (outputs, inputs, gradOutputs) => {
    const first = grad(outputs, inputs, { gradOutputs, allowUnused: true, createGraph: true })
    const recorded = first.filter((g) => g?.requiresGrad) as Tensor[]
    return recorded.length === 0 ? [] : grad(recorded, inputs, { gradOutputs: recorded.map(goldenWeights), allowUnused: true })
  })
}

export async function compareAll(
  { tensors, found }: Gradients,
  wanted: readonly (GoldenTensor | null)[],
  zeroIsNone = false,
): Promise<string | null> {
  for (const i of tensors.keys()) {
    const failure = await compareOne(found[i]!, wanted[i]!, zeroIsNone)
    if (failure !== null) return `gradient of tensor ${i}: ${failure}`
  }
  return null
}

/** @param zeroIsNone no gradient is a gradient of 0: of what is constant only one side may have recorded something */
export async function compareOne(got: Tensor | null, want: GoldenTensor | null, zeroIsNone = false): Promise<string | null> {
  if (got !== null && want !== null) return compare(await got.data(), got, want, TOLERANCE)
  if (!zeroIsNone) return got === want ? null : `expected ${want === null ? 'none' : 'one'}, got ${got}`
  const rest = got === null ? (want?.data ?? []).map(Number) : [...(await got.data())]
  return rest.every((v) => v === 0) ? null : `expected ${want === null ? 'none' : want.data}, got ${got}`
}
