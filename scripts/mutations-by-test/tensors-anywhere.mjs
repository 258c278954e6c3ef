/** Tensors that may lie anywhere: devices, what moves between them, and what a device with a memory of its own gives back and reports. */
import { t } from './mutation.mjs'

const RESIDENT = 'packages/tensor/src/tensor/resident-device.test.ts'
const GRADIENTS = 'packages/autograd/src/record/devices.test.ts'
const DEVICE = 'packages/tensor/src/tensor/device.ts'

export const tensorsAnywhere = [
  t(
    'devices-of-the-scope-compute',
    RESIDENT,
    'a tensor knows its device operations run where their operands are',
    DEVICE,
    'return current.home === home ? current : deviceOf(home)',
    'return current',
    'the current device computes, wherever the operands are',
  ),
  t(
    'devices-mix-in-silence',
    RESIDENT,
    'a tensor knows its device two devices in one call',
    'packages/tensor/src/tensor/arguments.ts',
    '  if (stray !== undefined) {\n',
    '  if (stray === null) {\n',
    'a call with tensors of two devices is not refused',
  ),
  t(
    'devices-like-the-scope',
    RESIDENT,
    'a tensor knows its device factories take',
    'packages/tensor/src/tensor/create.ts',
    'options?.device === undefined ? x.storage.memory : homeOf',
    'options?.device === null ? x.storage.memory : homeOf',
    'zerosLike goes to the device of the scope',
  ),
  t(
    'devices-buffers-stay',
    RESIDENT,
    'memory counts what is in use',
    'packages/tensor/src/heap/storage.ts',
    '    this.device?.giveBack()\n',
    '',
    'a closed tensor keeps its buffer',
  ),
  t(
    'devices-number-keeps-its-buffer',
    RESIDENT,
    'memory counts what is in use',
    'packages/tensor/src/raw/elementwise.ts',
    'if (scalar.storage.memory !== CPU) scalar.close()',
    'if (scalar.storage.memory === null) scalar.close()',
    'the buffer of a number waits for the collector',
  ),
  t(
    'devices-history-ends-at-cpu',
    GRADIENTS,
    'what cpu() brings down',
    'packages/autograd/src/install.ts',
    'operations.arrived(x, elements, x.device)',
    'elements',
    'cpu() gives a constant',
  ),
  t(
    'devices-gradient-stays-down',
    GRADIENTS,
    'what cpu() brings down',
    'packages/tensor/src/ops/inner/copies.ts',
    'grads: ([g], s, ops) => [ops.to(g!, s.attrs[0]), null]',
    'grads: ([g]) => [g!, null]',
    'the gradient of a move does not go back',
  ),
  t(
    'devices-state-stays-here',
    'packages/nn/src/resident.test.ts',
    'the state of an optimizer is put where its parameter is',
    'packages/nn/src/optim/optimizer-base.ts',
    'const there = raw.to(t, p.device, p.dtype)',
    'const there = raw.to(t, p.dtype)',
    'the state of an optimizer stays on the cpu',
  ),
  t(
    'devices-nan-unreported',
    'packages/autograd/src/graph/anomaly.test.ts',
    'a gradient with NaN on a device with a memory of its own',
    'packages/autograd/src/graph/anomaly.ts',
    'reportIf(raw.amax(raw.ne(values, values)), foundNaN(node, index, origin))',
    'raw.amax(raw.ne(values, values))',
    'anomaly mode is silent on a device',
  ),
  t(
    'devices-wrong-elements-unreported',
    RESIDENT,
    'operations on a device with a memory of its own bceLoss',
    'packages/tensor/src/ops/losses.ts',
    "reportIf(rawOperations.amax(wrong(x)), invalidArgument(op, expected, 'others', remedy))",
    'rawOperations.amax(wrong(x))',
    'bceLoss takes what is no probability on a device',
  ),
]
