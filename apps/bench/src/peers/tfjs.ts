/** tfjs on its wasm backend, on one thread, if `npm run bench` could install it (`apps/bench/peers`). */
import { createRequire } from 'node:module'
import { dirname, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Contestant } from '../row.js'
import { timed } from '../timed.js'

interface TfTensor {
  dispose(): void
}
/** Used part of `@tensorflow/tfjs-core`. */
interface Tf {
  setBackend(name: string): Promise<boolean>
  randomUniform(shape: readonly number[]): TfTensor
  matMul(a: TfTensor, b: TfTensor): TfTensor
  conv2d(x: TfTensor, filter: TfTensor, strides: number, pad: number): TfTensor
  softmax(x: TfTensor): TfTensor
  add(a: TfTensor, b: TfTensor): TfTensor
  tanh(x: TfTensor): TfTensor
  readonly version_core: string
}

const CORE = '@tensorflow/tfjs-core'
const BACKEND = '@tensorflow/tfjs-backend-wasm'

export class TfjsPeer {
  readonly version: string
  private readonly tf: Tf

  private constructor(tf: Tf) {
    this.tf = tf
    this.version = tf.version_core
  }

  /** Null, with the reason on `say`, where it is not installed. */
  static async start(say: (line: string) => void): Promise<TfjsPeer | null> {
    const require = createRequire(new URL('../../peers/package.json', import.meta.url))
    try {
      const tf = require(CORE) as Tf
      const backend = require(BACKEND) as { setWasmPaths(path: string): void; setThreadsCount(n: number): void }
      backend.setThreadsCount(1)
      backend.setWasmPaths(dirname(require.resolve(BACKEND)) + sep)
      if (!(await tf.setBackend('wasm'))) throw new Error('its wasm backend does not start')
      return new TfjsPeer(tf)
    } catch (error) {
      say(
        `tfjs: ${(error as Error).message.split('\n')[0]}, so its column is empty (${pathToFileURL(require.resolve('./package.json')).pathname})`,
      )
      return null
    }
  }

  matmul(size: number): Contestant {
    const [a, b] = [this.tf.randomUniform([size, size]), this.tf.randomUniform([size, size])]
    return this.repeat(() => this.tf.matMul(a, b))
  }

  /** Its layout is [N, H, W, C] and [kernel height, kernel width, C, out]. */
  conv2d([images, channels, height, width]: readonly [number, number, number, number], out: number, kernel: number): Contestant {
    const x = this.tf.randomUniform([images, height, width, channels])
    const filter = this.tf.randomUniform([kernel, kernel, channels, out])
    return this.repeat(() => this.tf.conv2d(x, filter, 1, (kernel - 1) / 2))
  }

  softmax(shape: readonly number[]): Contestant {
    const x = this.tf.randomUniform(shape)
    return this.repeat(() => this.tf.softmax(x))
  }

  add(length: number): Contestant {
    const [a, b] = [this.tf.randomUniform([length]), this.tf.randomUniform([length])]
    return this.repeat(() => this.tf.add(a, b))
  }

  tanh(length: number): Contestant {
    const x = this.tf.randomUniform([length])
    return this.repeat(() => this.tf.tanh(x))
  }

  private repeat(work: () => TfTensor): Contestant {
    return async (n) => timed(n, () => work().dispose())
  }
}
