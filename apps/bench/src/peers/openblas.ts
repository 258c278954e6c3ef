/**
 * Sets the kernels of OpenBLAS, which PyTorch's matmul uses. Debian's OpenBLAS does not know newer processors and takes Prescott's kernels there, at a sixth of the speed.
 */
import { readFileSync } from 'node:fs'
import { openblasCore } from '@postgrad/tensor/internal'

/**
 * The environment of a program with OpenBLAS on so many threads: the core that fits, unless the user has set one, and OpenBLAS says on stderr which it took.
 * OpenBLAS with threads of its own takes all cores otherwise, whatever `torch.set_num_threads` says.
 */
export function openblasEnv(env: NodeJS.ProcessEnv, threads: number, flags = flagsHere()): NodeJS.ProcessEnv {
  const core = openblasCore(new Set(flags.split(/\s+/)))
  return { OPENBLAS_VERBOSE: '2', ...(core === null ? {} : { OPENBLAS_CORETYPE: core }), ...env, OPENBLAS_NUM_THREADS: String(threads) }
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
