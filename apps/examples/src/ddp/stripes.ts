/** Noisy pictures of level, upright and slanted stripes, which the convolutional networks of the data-parallel examples classify. */
import { type Generator, type Tensor, tensor } from 'postgrad'

export const KINDS = 3
export const SIDE = 8

/** images [count, 1, SIDE, SIDE], labels int32 [count] */
export function stripes(generator: Generator, count: number): { readonly images: Tensor; readonly labels: Tensor } {
  const pixels = new Float32Array(count * SIDE * SIDE)
  const labels = new Int32Array(count)
  for (let n = 0; n < count; n++) {
    const kind = generator.integer(0, KINDS)
    const phase = generator.integer(0, 4)
    labels[n] = kind
    for (let y = 0; y < SIDE; y++) {
      for (let x = 0; x < SIDE; x++) {
        const along = kind === 0 ? y : kind === 1 ? x : x + y
        pixels[(n * SIDE + y) * SIDE + x] = ((along + phase) % 4 < 2 ? 1 : -1) + 1.5 * (generator.uniform64() - 0.5) * 2
      }
    }
  }
  return { images: tensor(pixels).reshape([count, 1, SIDE, SIDE]), labels: tensor(labels) }
}
