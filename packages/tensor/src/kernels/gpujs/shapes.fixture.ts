/** A program for a process of its own: kernels of many shapes, one after the other, and what that did to the process's memory. */
import { readFileSync } from 'node:fs'
import { createGpujsBackend } from './backend.js'
import { type GpuMode, KernelCompiler } from './compiler.js'

const [mode, kernelsMax, warmUp, shapes] = process.argv.slice(2) as [GpuMode, string, string, string]
const WARM_UP = Number(warmUp)

/** In MB and GB; on a machine without /proc the addresses count as none. */
function memory(): { rssMB: number; addressesGB: number } {
  const collect = (globalThis as { gc?: () => void }).gc
  collect?.()
  let addressesGB = 0
  try {
    addressesGB = Number(/VmSize:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 2 ** 20
  } catch {}
  return { rssMB: process.memoryUsage().rss / 2 ** 20, addressesGB }
}

const compiler = new KernelCompiler(mode, Number(kernelsMax))
const { kernels, userKernels } = createGpujsBackend(mode, compiler)
const { exp } = kernels
if ('unsupported' in exp.float32) throw new Error(exp.float32.unsupported)
const own = { name: 'own', inputs: ['x'], source: 'function (x) { return 2 * x[this.thread.x]; }' }

function run(n: number): void {
  const x = new Float32Array(n).fill(1)
  const out = new Float32Array(n)
  if (n % 2 === 0) userKernels.run(own, n, {}, [x], out, 0)
  else if ('flat' in exp.float32) exp.float32.flat(n, x, 0, out, 0, 0, 0)
  const want = n % 2 === 0 ? 2 : Math.E
  if (Math.abs(out[n - 1]! - want) > 1e-5) throw new Error(`${n}: ${out[n - 1]}`)
}

for (let n = 1; n <= WARM_UP; n++) run(n)
const before = memory()
for (let n = 1; n <= Number(shapes); n++) run(WARM_UP + n)
console.log(JSON.stringify({ before, after: memory(), ...compiler.counts }))
