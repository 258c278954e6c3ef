/**
 * Sets the kernels of OpenBLAS, which PyTorch's matmul uses. Debian's OpenBLAS does not know newer processors and takes Prescott's kernels there, at a sixth of the speed.
 */
import { readFileSync } from 'node:fs'

const AVX512 = ['avx512f', 'avx512cd', 'avx512bw', 'avx512dq', 'avx512vl']
const AVX2 = ['avx2', 'fma']

/** The core that fits a processor with these flags, as `/proc/cpuinfo` has them; null: OpenBLAS may choose. */
export function openblasCore(flags: string): 'SKYLAKEX' | 'HASWELL' | null {
  const has = new Set(flags.split(/\s+/))
  if (AVX512.every((flag) => has.has(flag))) return 'SKYLAKEX'
  return AVX2.every((flag) => has.has(flag)) ? 'HASWELL' : null
}

/** The environment of a program with OpenBLAS: the core that fits, unless the user has set one, and OpenBLAS says on stderr which it took. */
export function openblasEnv(env: NodeJS.ProcessEnv, flags = flagsHere()): NodeJS.ProcessEnv {
  const core = openblasCore(flags)
  return { OPENBLAS_VERBOSE: '2', ...(core === null ? {} : { OPENBLAS_CORETYPE: core }), ...env }
}

/** The core that OpenBLAS took, by what it has written to stderr; null: it has not said so (yet). */
export function coreTaken(stderr: string): string | null {
  return /^Core: (\S+)\n/m.exec(stderr)?.[1] ?? null
}

function flagsHere(): string {
  try {
    return /^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? ''
  } catch {
    return ''
  }
}
