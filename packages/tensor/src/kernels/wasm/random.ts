/** Random numbers of the wasm backend, a chunk at a time; few ones by the js backend's loops, with the same bits. */
import type { Draw } from '../table/operands.js'
import { CHUNK, ROOM } from './calls/dense.js'
import { align, type LazyInstance, SIMD_FROM } from './calls/instance.js'
import { by, bySize, loopsOf, type OwnCells } from './calls/own.js'
import { workedElements } from './calls/pause.js'
import { unstage } from './calls/strided.js'

type UniformExport = 'uniform_f32' | 'uniform_f64' | 'uniform_i32'
type NormalExport = 'normal_f32' | 'normal_f64'
declare module './calls/instance.js' {
  interface KernelExports
    extends Readonly<Record<UniformExport, (n: number, words: number, out: number) => void>>,
      Readonly<Record<NormalExport, (n: number, x: number, out: number) => void>> {}
}

const WORDS_BYTES = align(4 * 4)

/** `run` makes `n` numbers at an address, with `words` and room for a chunk of its own. */
function draw(lazy: LazyInstance, loops: Draw, run: (n: number, words: number, out: number, room: number) => void): Draw {
  return (words, out, from, count) => {
    if (count < SIMD_FROM) {
      loops(words, out, from, count)
      return
    }
    const instance = lazy.get()
    const state = instance.begin(WORDS_BYTES + 2 * ROOM)
    const room = state + WORDS_BYTES
    instance.i32.set(words, state / 4)
    const host = out.storage.host!
    const direct = instance.direct(host, out.offset + from)
    for (let i = 0; i < count; i += CHUNK) {
      const n = Math.min(CHUNK, count - i)
      const to = direct < 0 ? room + ROOM : direct + i * host.BYTES_PER_ELEMENT
      run(n, state, to, room)
      if (direct < 0) unstage(instance, n, to, out, from + i)
      workedElements(n)
    }
    words.set(instance.i32.subarray(state / 4, state / 4 + words.length))
  }
}

export function cells(lazy: LazyInstance): OwnCells {
  const uniform = (name: UniformExport, loops: Draw) => draw(lazy, loops, (n, words, out) => lazy.get().kernels[name](n, words, out))
  /** Of uniform ones of float64. */
  const normal = (name: NormalExport, loops: Draw) =>
    draw(lazy, loops, (n, words, out, room) => {
      lazy.get().kernels.uniform_f64(n, words, room)
      lazy.get().kernels[name](n, room, out)
    })
  const [uniforms, normals] = [loopsOf('uniform'), loopsOf('normal')]
  return {
    uniform: by(bySize, {
      float32: uniform('uniform_f32', uniforms.float32),
      float64: uniform('uniform_f64', uniforms.float64),
      int32: uniform('uniform_i32', uniforms.int32),
    }),
    normal: by(bySize, { float32: normal('normal_f32', normals.float32), float64: normal('normal_f64', normals.float64) }),
  }
}
