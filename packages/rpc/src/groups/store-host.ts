/**
 * The store of one worker, and the built-in function by which others use it. It is made when somebody first asks for it. `store-over-rpc.ts` is the other side.
 */
import { PostgradError } from '@postgrad/base'
import { plainText } from '@postgrad/base/internal'
import { HashStore, type StoreWaitOptions } from '@postgrad/transport'
import { currentServing } from '../core/served-call.js'
import { WorkerSlot } from '../core/slots.js'

/** Runs each operation, by the name of the method. */
export const STORE_CALL = 'postgrad.store'

/** The host's side. Arguments that are odd fail as they fail in a store. */
export function callStore(method: unknown, args: unknown): unknown {
  const store = HOSTED_STORE.here
  const [first, second, third] = (Array.isArray(args) ? args : []) as unknown as readonly never[]
  /** A caller that gives its wait up, or dies, ends it here. */
  const waiting = (): StoreWaitOptions => {
    const signal = currentServing()?.signal
    return signal === undefined ? { timeoutMs: second! } : { timeoutMs: second!, signal }
  }
  switch (method) {
    case 'set':
      return store.set(first!, second!)
    case 'get':
      return store.get(first!, waiting())
    case 'add':
      return store.add(first!, second!)
    case 'compareSet':
      return store.compareSet(first!, second!, third!)
    case 'wait':
      return store.wait(first!, waiting())
    case 'check':
      return store.check(first!)
    case 'deleteKey':
      return store.deleteKey(first!)
    case 'numKeys':
      return store.numKeys()
    default:
      throw new PostgradError('METHOD_NOT_FOUND', { op: 'store', expected: 'a method of Store', got: plainText(method) })
  }
}

export const HOSTED_STORE = new WorkerSlot('store', (worker) => {
  const store = new HashStore(worker.clock)
  worker.onClose(() => store.close())
  worker.contribute(() => ({ storeWaits: store.waiting }))
  return store
})
