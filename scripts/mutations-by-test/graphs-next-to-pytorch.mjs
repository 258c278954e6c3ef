/** Graphs next to PyTorch. */
import { t } from './mutation.mjs'

export const graphsNextToPytorch = [
  t(
    'quiet-custom-keeps-history',
    'packages/autograd/src/engine/autograd.test.ts',
    'gives back',
    'packages/autograd/src/record/custom-function.ts',
    '(currentScope().gradEnabled ? result : withoutHistory(result)) as R',
    'result as R',
    'an argument that a custom function gives back under noGrad keeps its history',
  ),
  t(
    'flatten-makes-a-view',
    'packages/tensor/src/composite/shape.test.ts',
    'flatten',
    'packages/tensor/src/composite/shape.ts',
    'if (from === to && x.ndim > 0) return x',
    '',
    'flatten of one dimension makes another tensor',
  ),

  t(
    'dead-peers-kept',
    'packages/testing/src/suites/deaths-kept.sim.test.ts',
    'RPC-57',
    'packages/rpc/src/core/worker-core.ts',
    'this.peers.forgetTheDead()',
    '',
    'a worker keeps all that it had with a peer that has died, for as long as it lives',
  ),
  t(
    'dead-callers-kept',
    'packages/testing/src/suites/deaths-kept.sim.test.ts',
    'RPC-57',
    'packages/rpc/src/calls/call-serving.ts',
    'if (peer.link?.closed) this.core.peers.forgetTheDead()',
    '',
    'a worker keeps a dead peer whose call it served at its death',
  ),
  t(
    'csv-error-by-code',
    'packages/data/src/csv.test.ts',
    'what is wrong is told with its line',
    'packages/data/src/csv.ts',
    'error instanceof CsvError ||',
    '/^CSV_/.test(String((error as { code?: unknown }).code)) ||',
    'errors of csv-parse whose codes begin otherwise come bare',
  ),
]
