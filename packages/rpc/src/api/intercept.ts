/** `intercept`, with which users put functions around their worker's calls. */
import { PostgradError } from '@postgrad/base'
import type { CallInterceptor } from '../observe/call-interceptors.js'
import { currentRuntime } from './api.js'

/**
 * Puts an interceptor around the calls that the current worker makes and serves. Returns a function that removes the interceptor. A later interceptor runs
 * inside of earlier ones.
 *
 * Each worker has its own interceptors. If a program of `launch` calls `intercept` at the place where it calls `expose`, every worker has the interceptor.
 * PyTorch has no counterpart.
 * @throws INVALID_ARGUMENT if neither `outgoing` nor `incoming` is given, or if one of them is not a function
 * @throws RPC_NOT_INITIALIZED if no worker runs this code
 * @example
 * const names: string[] = []
 * const remove = intercept({ outgoing: ({ functionName, to }) => void names.push(`${functionName} on ${to.name}`) })
 * await call('worker1', addOne, [x])
 * names // ['addOne on worker1']
 * remove()
 */
export function intercept(interceptor: CallInterceptor): () => void {
  const { outgoing, incoming } = (interceptor ?? {}) as Partial<CallInterceptor>
  const wrong = [outgoing, incoming].some((fn) => fn !== undefined && typeof fn !== 'function')
  if (wrong || (outgoing === undefined && incoming === undefined)) {
    throw new PostgradError('INVALID_ARGUMENT', {
      op: 'intercept',
      expected: '{ outgoing, incoming }, at least one of them, functions',
      got: wrong ? 'something else under these names' : 'neither',
      remedy: 'Write intercept({ outgoing(call) { … }, incoming(call, next) { return next() } }), with one of them or both.',
    })
  }
  return currentRuntime().interceptCalls(interceptor)
}
