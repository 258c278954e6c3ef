/**
 * Jest's node environment with this realm's binary types and collections: without them a typed array that comes from a worker or a
 * native API fails `instanceof` inside a test, and msgpackr decodes it wrongly.
 */
import { TestEnvironment as NodeEnvironment } from 'jest-environment-node'

const SHARED = [
  ...['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array'],
  ...['Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array'],
  ...['ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'Map', 'Set'],
]

export default class PostgradEnvironment extends NodeEnvironment {
  constructor(config, context) {
    super(config, context)
    for (const name of SHARED) this.global[name] = globalThis[name]
  }
}
