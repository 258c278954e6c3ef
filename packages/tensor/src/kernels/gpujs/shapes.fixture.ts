/** A program that runs kernels of many shapes, one after the other, and prints its memory before and after. */
import { operandOf } from '../suite/layouts.suite.js'
import { isUnsupported } from '../table/table.js'
import { createGpujsBackend } from './backend.js'
import { KernelCompiler } from './compiler.js'

const [kernelsMax, warmUp, shapes] = process.argv.slice(2).map(Number) as [number, number, number]

function rssMB(): number {
  const collect = (globalThis as { gc?: () => void }).gc
  collect?.()
  return process.memoryUsage().rss / 2 ** 20
}

const compiler = new KernelCompiler(kernelsMax)
const { kernels, userKernels } = createGpujsBackend(compiler)
const { exp } = kernels
if (isUnsupported(exp.float32)) throw new Error(exp.float32.unsupported)
const run32 = exp.float32
const own = { name: 'own', inputs: ['x'], source: 'function (x) { return 2 * x[this.thread.x]; }' }

function run(n: number): void {
  const x = new Float32Array(n).fill(1)
  const out = new Float32Array(n)
  if (n % 2 === 0) userKernels.run(own, {}, [operandOf(x, 0, [n])], operandOf(out, 0, [n]))
  else run32(operandOf(x, 0, [n]), operandOf(out, 0, [n]), 0, 0)
  const want = n % 2 === 0 ? 2 : Math.E
  if (Math.abs(out[n - 1]! - want) > 1e-5) throw new Error(`${n}: ${out[n - 1]}`)
}

for (let n = 1; n <= warmUp; n++) run(n)
const before = rssMB()
for (let n = 1; n <= shapes; n++) run(warmUp + n)
console.log(JSON.stringify({ before, after: rssMB(), ...compiler.counts }))
