/** Type errors of public names: a class or function with wrong arguments, and names outside of closed sets. rpc's `types.test.ts` has more. */
import { expect, test } from '@jest/globals'
import { workerDataset } from './data.js'
import { type Controller, DistributedOptimizer, RemoteModule, type RRef, type Tensor, tensor } from './index.js'
import type { Jobs } from './jobs.js'
import { Linear, Module } from './nn.js'
import { Adam } from './optim.js'
import { failFirst, simulate } from './testing.js'

class Tower extends Module {
  readonly head: Module
  constructor(head: RemoteModule<Linear>, readonly: { readonly width: number } = { width: 1 }) {
    super()
    this.head = head
    void readonly
  }
  forward(x: Tensor): Tensor {
    return x
  }
}
const width = (head: Module, x: Tensor): number => (head.training ? x.numel : 0)
const each = (fn: (x: number) => number): number => fn(1)

/** Never run: only the compiler reads it. */
function accepted(weights: RRef<Tensor>[], jobs: Jobs, worker: Controller): void {
  const remote = new RemoteModule('w', Linear, [3, 4, { bias: false }])
  const output: Promise<Tensor> = remote.forward(tensor([[1, 2, 3]]))
  const tower: RemoteModule<Tower> = new RemoteModule('w', Tower, [remote])
  const named: RemoteModule<Linear> = new RemoteModule<Linear>('w', Linear, [3, 4])
  void new RemoteModule('w', tower.getModuleRref())
  void new DistributedOptimizer(Adam, weights, { lr: 0.1, betas: [0.8, 0.9] })
  void jobs.run(width, [remote, tensor(1)])
  void worker.run(width, named, tensor(1))
  void simulate({ workers: 2, faults: [{ match: { kind: ['RESULT', 'SESSION_ACK'] }, do: 'drop' }, failFirst(2, 'CALL')] }, async () => {})
  void output
}

/** Never run. */
function refused(weights: RRef<Tensor>[], jobs: Jobs, worker: Controller): void {
  // @ts-expect-error the constructor takes numbers
  void new RemoteModule('w', Linear, ['three', 4])
  // @ts-expect-error too few arguments
  void new RemoteModule('w', Linear, [3])
  // @ts-expect-error none where there must be some
  void new RemoteModule('w', Linear)
  // @ts-expect-error no such option
  void new RemoteModule('w', Linear, [3, 4, { bais: false }])
  // @ts-expect-error a module does not travel, a RemoteModule does
  void worker.run(width, new Linear(1, 1), tensor(1))
  // @ts-expect-error code does not travel to a worker
  void worker.run(each, (x: number) => x)
  // @ts-expect-error nor to a thread of a pool
  void jobs.run(each, [(x: number) => x])
  // @ts-expect-error nor to all of them
  void jobs.map(each, [(x: number) => x])
  // @ts-expect-error nor to a dataset's worker
  void workerDataset('file:///data.js', (fn: () => number) => [fn()], [() => 1])
  void workerDataset('file:///data.js', () => [1])
  void workerDataset('file:///data.js', (n = 1) => [n])
  // @ts-expect-error the function needs an argument
  void workerDataset('file:///data.js', (n: number) => [n])
  // @ts-expect-error no option of that class
  void new DistributedOptimizer(Adam, weights, { momentum: 0.9 })
  // @ts-expect-error an option of another type
  void new DistributedOptimizer(Adam, weights, { lr: 'fast' })
  // @ts-expect-error no kind of message
  void simulate({ workers: 2, faults: [{ match: { kind: 'RESULTT' }, do: 'drop' }] }, async () => {})
  // @ts-expect-error no kind of message in a list
  void simulate({ workers: 2, faults: [{ match: { kind: ['CALL', 'RESULTT'] }, do: 'drop' }] }, async () => {})
  // @ts-expect-error no kind of message
  failFirst(1, 'RESULTT')
}

test('RPC-9: the compiler checks arguments against the class or function that takes them, and names of closed sets', () => {
  expect([accepted, refused].every((fn) => typeof fn === 'function')).toBe(true)
})
