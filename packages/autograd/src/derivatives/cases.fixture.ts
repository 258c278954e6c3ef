/** How the tests of derivatives name a case, and the inputs that they make for it. */
import { type Tensor, tensor } from '@postgrad/tensor'

type Shape = readonly number[]

export interface Case<Result = Tensor> {
  readonly shapes: readonly Shape[]
  readonly fn: (...inputs: Tensor[]) => Result
  /** Maps the i-th value of a sequence without repetitions in (−2, 2) into the op's domain. */
  readonly domain?: (x: number) => number
}

/** Shapes as '2,3; 3; scalar', or as arrays. */
export function c<Result = Tensor>(shapes: string | readonly Shape[], fn: Case<Result>['fn'], domain?: Case['domain']): Case<Result> {
  return { shapes: typeof shapes === 'string' ? shapes.split(';').map(parseShape) : shapes, fn, ...(domain && { domain }) }
}

function parseShape(text: string): Shape {
  return text.trim() === 'scalar' ? [] : text.split(',').map(Number)
}

/** Irregular values, never twice the same, none near a kink of another: multiples of the golden section, folded into (−2, 2). Leaves. */
export function inputs({ shapes, domain = (x) => x }: Pick<Case, 'shapes' | 'domain'>): Tensor[] {
  let k = 0
  const next = () => domain((((++k * 0.6180339887498949) % 1) - 0.5) * 4)
  return shapes.map((shape) => {
    const size = shape.reduce((n, extent) => n * extent, 1)
    return tensor(Float64Array.from({ length: size }, next))
      .reshape(shape)
      .requiresGrad_()
  })
}

/** An int32 tensor. */
export function ints(values: readonly number[], shape: Shape = [values.length]): Tensor {
  return tensor(Int32Array.from(values)).reshape(shape)
}
