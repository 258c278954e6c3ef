/** The limit of products: how many multiplications and additions a second 128-bit SIMD does here (`assembly/peak.ts`). */
import { fileURLToPath } from 'node:url'
import type { Contestant } from '../row.js'
import { timed } from '../timed.js'

const FLOPS_PER_ROUND = 64
/** Where the numbers lie: anywhere but at 0. */
const AT = 1024
const SMALL = 1e-10

type Peak = (n: number, at: number) => number

declare const WebAssembly: {
  instantiate(bytes: Uint8Array): Promise<{ instance: { exports: { peak: Peak; memory: { buffer: ArrayBuffer } } } }>
}

/** Gives the seconds for n floating-point operations. Compiled when a row first asks: the compiler takes seconds to load. */
export function simdPeak(): Contestant {
  let made: Promise<Peak> | null = null
  return async (n) => {
    made ??= makePeak()
    const peak = await made
    return timed(1, () => peak(Math.ceil(n / FLOPS_PER_ROUND), AT))
  }
}

async function makePeak(): Promise<Peak> {
  const { error, stderr, binary } = await compile(fileURLToPath(new URL('../../assembly/peak.ts', import.meta.url)))
  if (error !== null) throw new Error(`assembly/peak.ts does not compile: ${stderr}`, { cause: error })
  const { peak, memory } = (await WebAssembly.instantiate(binary)).instance.exports
  new Float32Array(memory.buffer).fill(SMALL)
  return peak
}

/** The used part of `assemblyscript/asc`. Its types declare globals that differ from Node's, so they are not loaded. */
interface Asc {
  main(
    args: readonly string[],
    options: { writeFile(name: string, contents: unknown): void },
  ): Promise<{ error: Error | null; stderr: { toString(): string } }>
}
const ASC: string = 'assemblyscript/asc'

async function compile(path: string): Promise<{ error: Error | null; stderr: string; binary: Uint8Array }> {
  const asc = ((await import(ASC)) as { default: Asc }).default
  let binary = new Uint8Array()
  const { error, stderr } = await asc.main(
    [path, '--outFile', 'peak.wasm', '-O3', '--runtime', 'stub', '--enable', 'simd', '--initialMemory', '1'],
    {
      writeFile: (_name, contents) => {
        binary = contents as Uint8Array<ArrayBuffer>
      },
    },
  )
  return { error, stderr: stderr.toString(), binary }
}
