/** What a worker's tracer tells, and when it is silent. */
import { t } from './mutation.mjs'

const KERNELS = 'packages/autograd/src/engine/tracer.test.ts'
const WORKERS = 'packages/dist-autograd/src/engine/tracer.sim.test.ts'

export const theTracer = [
  t(
    'tracer-kernels-untold',
    KERNELS,
    'the tracer TRC-1: an operation has its kernels',
    'packages/tensor/src/tensor/device.ts',
    'return tracing === null ? kernelsNow(device) : kernelsOfTraced(device)',
    'return tracing !== null ? kernelsNow(device) : kernelsOfTraced(device)',
    'kernels are not traced',
  ),
  t(
    'tracer-operations-untold',
    KERNELS,
    'the tracer TRC-1: an operation has its kernels',
    'packages/tensor/src/tensor/arguments.ts',
    'if (hasDevices || tracing !== null) return apart(x)\n',
    'if (hasDevices) return apart(x)\n',
    'operations of one argument are not traced',
  ),
  t(
    'tracer-strided-code-claimed',
    KERNELS,
    'the tracer TRC-1: a kernel names',
    'packages/tensor/src/tensor/device.ts',
    'const variant = isDense ? implementation.variantOf(op, dtype, shape) : null',
    'const variant = implementation.variantOf(op, dtype, shape)',
    'a kernel of strided operands names the code for dense ones',
  ),
  t(
    'tracer-span-stays-open',
    KERNELS,
    'the tracer TRC-2: spans end',
    'packages/base/src/trace.ts',
    `  try {
    return fn()
  } finally {
    span?.end()
  }`,
    `  const result = fn()
  span?.end()
  return result`,
    'a span stays open if its function throws',
  ),
  t(
    'tracer-of-all-workers',
    'packages/base/src/trace.test.ts',
    'the tracer TRC-1: a reader gets the events of its worker alone',
    'packages/base/src/trace.ts',
    'return tracing?.get(worker) ?? null',
    'return tracing?.get(worker) ?? tracing?.values().next().value ?? null',
    'a reader of one worker gets what another does',
  ),
  t(
    'tracer-wait-never-ends',
    WORKERS,
    'the tracer of a worker TRC-4',
    'packages/rpc/src/core/pending-calls.ts',
    'if (observer !== null) observer.waitEnded(requestId)',
    '',
    'the span of a wait never ends',
  ),
  t(
    'tracer-put-off-goes-on',
    WORKERS,
    'the tracer of a worker TRC-3: a call that a serial actor',
    'packages/rpc/src/observe/inspection.ts',
    "    endServe(call, 'put-off')\n",
    '',
    'the span of a served call goes on while a serial actor puts it off',
  ),
  t(
    'tracer-stays-on',
    WORKERS,
    'the tracer of a worker TRC-2',
    'packages/rpc/src/observe/observation.ts',
    '      this.inspection.tracer = null\n',
    '',
    'a worker is still observed after its last reader has stopped',
  ),
  t(
    'tracer-operations-of-two-untold',
    KERNELS,
    'the tracer TRC-1: an operation has its kernels',
    'packages/tensor/src/tensor/arguments.ts',
    'if (hasDevices || tracing !== null) return apart(x, y)\n',
    'if (hasDevices) return apart(x, y)\n',
    'operations of two arguments are not traced',
  ),
  t(
    'tracer-reader-breaks-code',
    'packages/base/src/trace.test.ts',
    'the tracer TRC-6',
    'packages/base/src/trace.ts',
    '        this.onBug(error)',
    '        throw error',
    'what a reader throws reaches the code that is traced',
  ),
  t(
    'tracer-of-the-closed',
    WORKERS,
    'the tracer of a worker TRC-3: a call ends at its caller',
    'packages/rpc/src/core/worker-core.ts',
    '      endTrace(this)\n',
    '',
    'a worker that has closed is still traced',
  ),
  t(
    'put-off-unseen-of-pending-value',
    WORKERS,
    'the tracer of a worker TRC-3: a call that a serial actor',
    'packages/rpc/src/core/incoming-call.ts',
    '    this.taker.putOff(this)\n',
    '',
    'nobody is notified that a serial actor has put a call off',
  ),
]
