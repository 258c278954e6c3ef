/** Whether device blas works here: which library it would use, and for which processor the library's kernels are. It is optional, so nothing here is a warning but old kernels. */
import { isPostgradError } from 'postgrad'
import type { Blas } from 'postgrad/plugin'
import { type Finding, ok, warn } from './finding.js'

/** Kernels of 2004 and 2008: OpenBLAS takes them on processors that it does not know. */
const OLD = /^(Prescott|Core2|Nehalem|Generic)$/i

export function judgeBlas(open: () => Pick<Blas, 'library' | 'file' | 'kernels'>): Finding {
  const name = 'device blas'
  try {
    const { library, file, kernels } = open()
    const found = `${library} (${file}${kernels === null ? '' : `, kernels of ${kernels}`})`
    if (kernels === null || !OLD.test(kernels)) return ok(name, found)
    return warn(name, found, 'These kernels are slow on newer processors.', "Set OPENBLAS_CORETYPE to your processor's, such as HASWELL.")
  } catch (error) {
    if (!isPostgradError(error, 'BLAS_NOT_FOUND')) throw error
    return ok(name, 'not there', 'It is optional. Large products of matrices are faster with OpenBLAS and the package koffi.')
  }
}
