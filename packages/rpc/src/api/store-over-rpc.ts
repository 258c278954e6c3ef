/**
 * A store that one worker keeps (`store-host.ts`) and all others reach by calls, on threads as in the simulation. The store and all waits in it end
 * with that worker. Its rules are in transport's SPEC.md.
 */
import { isPostgradError } from '@postgrad/base'
import { TextDecoder, timeLimit } from '@postgrad/base/internal'
import type { Store, StoreValue, StoreWaitOptions } from '@postgrad/transport'
import { STORE_TIMEOUT_MS, storeCancelled } from '@postgrad/transport/internal'
import type { Target, WorkerInfo } from '../common/worker-info.js'
import { LEADER_GRACE_MS } from '../groups/group-errors.js'
import { callStore } from '../groups/store-host.js'
import { currentRuntime } from './api.js'

/**
 * Returns the key-value store that the worker `target` keeps. All workers that name the same worker use the same store; a `PrefixStore` keeps the keys of
 * several groups apart. PyTorch: a `TCPStore` whose host is that worker.
 *
 * The store's methods also fail with WORKER_DIED if `target` ends, and with RPC_SHUT_DOWN if the current worker ends.
 * @throws UNKNOWN_WORKER if the current worker does not know `target`
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * const store = storeOn('worker0') // the same store on every worker that names worker0
 * await store.set('epoch', '3')
 * await store.getText('epoch') // '3'
 */
export function storeOn(target: Target): Store {
  return new RpcStore(currentRuntime().resolve(target, 'storeOn'))
}

class RpcStore implements Store {
  private readonly host: WorkerInfo
  private timeoutMs = STORE_TIMEOUT_MS

  constructor(host: WorkerInfo) {
    this.host = host
  }

  async set(key: string, value: StoreValue): Promise<void> {
    await this.call('set', [key, value])
  }

  async get(key: string, options?: StoreWaitOptions): Promise<Uint8Array> {
    return (await this.waitFor('get', key, options)) as Uint8Array
  }

  async getText(key: string, options?: StoreWaitOptions): Promise<string> {
    return new TextDecoder().decode(await this.get(key, options))
  }

  async add(key: string, amount: number): Promise<number> {
    return (await this.call('add', [key, amount])) as number
  }

  async compareSet(key: string, expected: StoreValue, desired: StoreValue): Promise<Uint8Array> {
    return (await this.call('compareSet', [key, expected, desired])) as Uint8Array
  }

  async wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void> {
    await this.waitFor('wait', keys, options)
  }

  async check(keys: readonly string[]): Promise<boolean> {
    return (await this.call('check', [keys])) as boolean
  }

  async deleteKey(key: string): Promise<boolean> {
    return (await this.call('deleteKey', [key])) as boolean
  }

  async numKeys(): Promise<number> {
    return (await this.call('numKeys', [])) as number
  }

  setTimeout(timeoutMs: number): void {
    timeLimit('setTimeout', timeoutMs)
    this.timeoutMs = timeoutMs
  }

  private call(method: string, args: readonly unknown[]): Promise<unknown> {
    return currentRuntime().call(this.host, callStore, [method, args])
  }

  /** The host counts the time and knows which keys are missing; only if it does not answer, the call's own deadline ends the wait. */
  private async waitFor(method: string, what: unknown, { timeoutMs = this.timeoutMs, signal }: StoreWaitOptions = {}): Promise<unknown> {
    const limitMs = timeLimit(method, timeoutMs)
    const callMs = limitMs === Number.POSITIVE_INFINITY ? 0 : limitMs + LEADER_GRACE_MS
    const options = signal === undefined ? { timeoutMs: callMs } : { timeoutMs: callMs, signal }
    try {
      return await currentRuntime().call(this.host, callStore, [method, [what, timeoutMs]], options)
    } catch (error) {
      throw isPostgradError(error, 'CALL_CANCELLED') && signal?.aborted ? storeCancelled(method, signal.reason) : error
    }
  }
}
