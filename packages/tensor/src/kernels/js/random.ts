/** Random numbers of the js backend, one by one as `values/draws.ts` draws them. */
import { xoroshiro128plusFromState } from 'pure-rand/generator/xoroshiro128plus'
import { bits, normalPair, uniform, uniform64 } from '../../values/draws.js'
import type { Draw } from '../table/operands.js'
import { REAL_DRAWS, real } from './cells.js'

const uniforms =
  (next: typeof uniform): Draw =>
  (words, out, from, count) => {
    const source = xoroshiro128plusFromState([...words])
    const [to, at] = [out.storage.host!, out.offset + from]
    for (let i = 0; i < count; i++) to[at + i] = next(source)
    words.set(source.getState())
  }

const normals: Draw = (words, out, from, count) => {
  const source = xoroshiro128plusFromState([...words])
  const [to, at] = [out.storage.host!, out.offset + from]
  const pair = new Float64Array(2)
  for (let i = 0; i < count; i += 2) {
    normalPair(source, pair)
    to[at + i] = pair[0]!
    to[at + i + 1] = pair[1]!
  }
  words.set(source.getState())
}

export const cells = {
  uniform: { ...real(uniforms(uniform64), uniforms(bits), REAL_DRAWS), float32: uniforms(uniform) },
  normal: real(normals, REAL_DRAWS, REAL_DRAWS),
}
