/** gpu.js by itself: a matrix product as its documentation has it. */
import { GPU } from 'gpu.js'
import type { Contestant } from '../row.js'
import { numbersOf, whenAsked } from '../timed.js'

/** [size, size] · [size, size], n times. */
export function gpujsMatmul(size: number): Contestant {
  const kernel = new GPU({ mode: 'webasm' as 'cpu' }).createKernel(
    `function (a, b) {
      let sum = 0;
      for (let p = 0; p < this.constants.size; p++) { sum += a[this.thread.y * this.constants.size + p] * b[p * this.constants.size + this.thread.x]; }
      return sum;
    }` as unknown as () => number,
    { output: [size, size], constants: { size } },
  )
  const call = kernel as unknown as (a: Float32Array, b: Float32Array) => unknown
  return whenAsked(() => {
    const [a, b] = [numbersOf(size * size), numbersOf(size * size)]
    return () => call(a, b)
  })
}
