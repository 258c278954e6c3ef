/** The BLAS libraries that systems have: where they lie, what they call their settings, and for which processors one needs a hint. Data for `open.ts`. */

/** A library that has `cblas_sgemm` and `cblas_dgemm`. */
export interface BlasLibrary {
  readonly name: 'OpenBLAS' | 'BLIS' | 'MKL' | 'Accelerate'
  /** File names by `process.platform`, which the system's loader looks up. Tried in this order. */
  readonly files: { readonly [platform: string]: readonly string[] }
  /** The declaration of the function that sets the number of threads; null: an environment variable alone does it. */
  readonly setThreads: string | null
  /** Set in the process's environment before the library is loaded, unless they are set. */
  readonly environment: (flags: ReadonlySet<string>) => Readonly<Record<string, string>>
  /** The declaration of the function that names the processor whose kernels the library took. */
  readonly kernels: string | null
}

const NONE = () => ({})

export const LIBRARIES: readonly BlasLibrary[] = [
  {
    name: 'OpenBLAS',
    files: {
      linux: ['libopenblas.so.0', 'libopenblas.so'],
      darwin: ['libopenblas.dylib', '/opt/homebrew/opt/openblas/lib/libopenblas.dylib', '/usr/local/opt/openblas/lib/libopenblas.dylib'],
      win32: ['libopenblas.dll', 'openblas.dll'],
    },
    setThreads: 'void openblas_set_num_threads(int)',
    environment: (flags): Readonly<Record<string, string>> => {
      const core = openblasCore(flags)
      return core === null ? {} : { OPENBLAS_CORETYPE: core }
    },
    kernels: 'const char *openblas_get_corename()',
  },
  {
    name: 'MKL',
    files: { linux: ['libmkl_rt.so.2', 'libmkl_rt.so'], darwin: ['libmkl_rt.2.dylib'], win32: ['mkl_rt.2.dll'] },
    setThreads: 'void MKL_Set_Num_Threads(int)',
    environment: NONE,
    kernels: null,
  },
  {
    name: 'BLIS',
    files: { linux: ['libblis.so.4', 'libblis.so.3', 'libblis.so'], darwin: ['libblis.dylib'], win32: ['AOCL-LibBlis-Win-dll.dll'] },
    setThreads: 'void bli_thread_set_num_threads(int64_t)',
    environment: NONE,
    kernels: null,
  },
  {
    name: 'Accelerate',
    files: { darwin: ['/System/Library/Frameworks/Accelerate.framework/Accelerate'] },
    setThreads: null,
    environment: () => ({ VECLIB_MAXIMUM_THREADS: '1' }),
    kernels: null,
  },
]

const AVX512 = ['avx512f', 'avx512cd', 'avx512bw', 'avx512dq', 'avx512vl']
const AVX2 = ['avx2', 'fma']

/**
 * The core that fits a processor with these flags of `/proc/cpuinfo`; null: OpenBLAS may choose. OpenBLAS before 0.3.22 does not know newer processors and takes
 * Prescott's kernels there, which have a sixth of the speed.
 */
export function openblasCore(flags: ReadonlySet<string>): 'SKYLAKEX' | 'HASWELL' | null {
  if (AVX512.every((flag) => flags.has(flag))) return 'SKYLAKEX'
  return AVX2.every((flag) => flags.has(flag)) ? 'HASWELL' : null
}
