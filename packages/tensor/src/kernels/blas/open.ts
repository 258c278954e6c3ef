/**
 * Opens the system's BLAS by koffi, an optional peer dependency. `POSTGRAD_BLAS` may name the library's file. A process loads the library once; each thread
 * has its own functions of it.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { PostgradError } from '@postgrad/base'
import { type BlasLibrary, LIBRARIES } from './libraries.js'

/** out = a · b by addresses: row-major, `transA` and `transB` say that a and b lie transposed; leading dimensions count elements. */
export type Gemm = (
  order: number,
  transA: number,
  transB: number,
  m: number,
  n: number,
  k: number,
  alpha: number,
  a: number,
  lda: number,
  b: number,
  ldb: number,
  beta: number,
  out: number,
  ldOut: number,
) => void

/** An open library. */
export interface Blas {
  /** The library's name, such as 'OpenBLAS'. */
  readonly library: string
  /** The file that was loaded. */
  readonly file: string
  /** The processor whose kernels it took, if the library says so. */
  readonly kernels: string | null
  readonly sgemm: Gemm
  readonly dgemm: Gemm
  /** The address of an array's first element. */
  addressOf(bytes: Uint8Array): number
  /** How many threads a product may use: one number, for all threads of the process. Until then the library has its own. */
  setThreads(n: number): void
}

/** The used part of koffi. */
interface Koffi {
  load(file: string): { func(declaration: string): (...args: never[]) => unknown }
  address(bytes: Uint8Array): bigint
}

const gemmOf = (name: string, real: string) =>
  `void ${name}(int, int, int, int, int, int, ${real}, uintptr_t, int, uintptr_t, int, ${real}, uintptr_t, int)`

/** One per thread. */
let opened: Blas | null = null

/** @throws BLAS_NOT_FOUND if koffi or a library is missing */
export function openBlas(): Blas {
  opened ??= open(koffiHere(), process.env.POSTGRAD_BLAS)
  return opened
}

function koffiHere(): Koffi {
  const places = [import.meta.url, `${process.cwd()}/package.json`]
  const errors: string[] = []
  for (const place of places) {
    try {
      return createRequire(place)('koffi') as Koffi
    } catch (error) {
      errors.push((error as Error).message.split('\n')[0]!)
    }
  }
  throw notFound(`koffi cannot be loaded (${errors[0]})`, 'Install koffi (npm install koffi), or use device wasm.')
}

/** @param file the library that the user named @throws BLAS_NOT_FOUND */
export function open(koffi: Koffi, file: string | undefined, platform: string = process.platform): Blas {
  const flags = processorFlags()
  const tried: string[] = []
  for (const library of LIBRARIES) {
    const files = file === undefined ? (library.files[platform] ?? []) : isOf(library, file) ? [file] : []
    for (const one of files) {
      const blas = attempt(koffi, library, one, flags)
      if (blas !== null) return blas
      tried.push(one)
    }
  }
  if (file !== undefined && tried.length === 0) {
    const blas = attempt(koffi, { ...LIBRARIES[0]!, name: 'OpenBLAS', setThreads: null, kernels: null }, file, flags)
    if (blas !== null) return { ...blas, library: 'BLAS' }
    tried.push(file)
  }
  throw notFound(
    `none of ${tried.join(', ')} can be loaded, or it has no cblas_sgemm`,
    'Install OpenBLAS (Debian: apt-get install libopenblas0-pthread; macOS has Accelerate), name its file in POSTGRAD_BLAS, or use device wasm.',
  )
}

/** Whether a file that the user named is of that library, by its name. */
function isOf(library: BlasLibrary, file: string): boolean {
  return file.toLowerCase().includes(library.name.toLowerCase())
}

/** Null if the file cannot be loaded or lacks the products. */
function attempt(koffi: Koffi, library: BlasLibrary, file: string, flags: ReadonlySet<string>): Blas | null {
  setEnvironment(koffi, library.environment(flags))
  try {
    const loaded = koffi.load(file)
    const sgemm = loaded.func(gemmOf('cblas_sgemm', 'float')) as Gemm
    const dgemm = loaded.func(gemmOf('cblas_dgemm', 'double')) as Gemm
    const setThreads = library.setThreads === null ? () => {} : (loaded.func(library.setThreads) as (n: number) => void)
    const kernels = library.kernels === null ? null : (loaded.func(library.kernels) as () => string)()
    return { library: library.name, file, kernels, sgemm, dgemm, setThreads, addressOf: (bytes) => Number(koffi.address(bytes)) }
  } catch {
    return null
  }
}

/** In the process's own environment, which libraries read: that of a thread is a copy. A variable that is set already stays. */
function setEnvironment(koffi: Koffi, values: Readonly<Record<string, string>>): void {
  if (Object.keys(values).length === 0 || process.platform === 'win32') return
  const libc = koffi.load(process.platform === 'darwin' ? 'libSystem.dylib' : 'libc.so.6')
  const setenv = libc.func('int setenv(const char *name, const char *value, int overwrite)') as (
    name: string,
    value: string,
    overwrite: number,
  ) => number
  for (const [name, value] of Object.entries(values)) setenv(name, value, 0)
}

function processorFlags(): ReadonlySet<string> {
  try {
    return new Set((/^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? '').trim().split(/\s+/))
  } catch {
    return new Set()
  }
}

function notFound(message: string, remedy: string): PostgradError {
  return new PostgradError('BLAS_NOT_FOUND', {
    op: 'device',
    message: `device 'blas' needs the system's BLAS library, and ${message}`,
    remedy,
  })
}
