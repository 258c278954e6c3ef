/** What the bench measures. */
import { t } from './mutation.mjs'

export const whatTheBenchMeasures = [
  t(
    'bench-rows-cold',
    'apps/bench/src/row.test.ts',
    'a row every row does its work 3,000 times',
    'apps/bench/src/row.ts',
    '(plan.warm ?? WARM_PASSES)',
    '(plan.warm ?? 0)',
    'a row of the bench that says nothing else is measured after a second, which is cold code where it is slow',
  ),
  t(
    'bench-first-is-any-turn',
    'apps/bench/src/row.test.ts',
    'a row every row does its work 3,000 times',
    'apps/bench/src/row.ts',
    'if (isOurs && times === 0) first',
    'if (isOurs) first',
    'the bench gives the cost of warm code as that of the first 100 times',
  ),
  t(
    'bench-openblas-by-itself',
    'apps/bench/src/peers/openblas.test.ts',
    'the user',
    'apps/bench/src/peers/openblas.ts',
    '...(core === null ? {} : { OPENBLAS_CORETYPE: core })',
    '...{}',
    'PyTorch beside the bench takes the kernels of an old processor on new ones',
  ),
]
