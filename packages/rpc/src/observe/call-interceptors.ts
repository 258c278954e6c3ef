/**
 * The users' interceptors of a worker's calls, which trace, time or refuse them. Distributed autograd uses other hooks (`hooks.ts`), since
 * it works on messages; an interceptor sees a call as its program sees it. The rules INT-1 to INT-9 are in SPEC.md.
 *
 *     caller   outgoing(call) of each, first to last ──▶ message ──▶ … reply ──▶ what they returned, last to first
 *     callee   incoming(call, next) of each, the first outermost ──▶ the function
 */
import { PostgradError } from '@postgrad/base'
import { isThenable, plainText } from '@postgrad/base/internal'
import {
  type CallHeaders,
  type HeaderValue,
  headersOf,
  isHeaderValue,
  type Message,
  MessageType,
  type OutgoingMessage,
  setHeaders,
} from '@postgrad/wire/internal'
import type { StreamItem } from '../calls/stream.js'
import { BUILT_IN, METHOD_CALL, STREAM_CALL } from '../common/built-in-names.js'
import type { WorkerInfo } from '../common/worker-info.js'
import type { CallHooks } from '../core/hooks.js'
import type { PendingCall } from '../core/pending-calls.js'
import type { ServedCall } from '../core/served-call.js'
import type { WorkerCore } from '../core/worker-core.js'

/** A call, as an interceptor sees it. */
export interface CallInfo {
  /** The kind of call. `call`: of a function or method; `remote`: its result stays there; `fetch`: `toHere`; `stream`: a stream as a whole. */
  readonly kind: 'call' | 'remote' | 'fetch' | 'stream'
  /** The name under which the function is exposed, or the method's name; `toHere` for a fetch. */
  readonly functionName: string
  /** Whether the call runs a method of a referenced value, not a function. */
  readonly isMethod: boolean
  /** The caller. */
  readonly from: WorkerInfo
  /** The callee. */
  readonly to: WorkerInfo
  /** The headers that interceptors on the caller have set so far. */
  readonly headers: CallHeaders
}

/** A call before it is sent: the argument of an interceptor's `outgoing`. */
export interface OutgoingCall extends CallInfo {
  /**
   * Sets a header that is sent with the call.
   * @throws INVALID_ARGUMENT unless `name` is a non-empty string and `value` a string, number, boolean, bigint or null
   */
  setHeader(name: string, value: HeaderValue): void
}

/** How a call ended for its caller: the argument of the function that `outgoing` returns. */
export interface CallOutcome {
  /** The error of the call; null if it succeeded. A `remote` succeeds when the owner has confirmed the reference. */
  readonly error: unknown
  /** The time from the call to its end, in ms of the caller's clock. */
  readonly elapsedMs: number
}

/** Functions around the calls of a worker, to trace, time or refuse the calls; `intercept` installs them. At least one is given. */
export interface CallInterceptor {
  /**
   * Runs on the caller, in the scope of the calling code, before the call is sent. If `outgoing` throws, the call fails with that error and is not sent.
   * `outgoing` may return a function, which receives the outcome of the call. `outgoing` must not be async.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is meant to fit
  outgoing?(call: OutgoingCall): ((outcome: CallOutcome) => void) | undefined | void
  /**
   * Runs on the callee, in the scope in which the called function runs. `next()` runs the next interceptor, or the function, and returns its result (a
   * promise if it is async); call `next` at most once. The value that `incoming` returns becomes the call's result, an error that it throws the call's error.
   */
  incoming?(call: CallInfo, next: () => unknown): unknown
}

const KINDS: ReadonlyMap<MessageType, CallInfo['kind']> = new Map([
  [MessageType.CALL, 'call'],
  [MessageType.REMOTE_CALL, 'remote'],
  [MessageType.RREF_FETCH, 'fetch'],
])

/** One worker's interceptors. */
export class CallInterceptors implements CallHooks {
  private readonly host: WorkerCore
  /** Replaced when it changes: an interceptor may remove itself while the list is read. */
  private list: readonly CallInterceptor[] = []

  constructor(host: WorkerCore) {
    this.host = host
  }

  get isEmpty(): boolean {
    return this.list.length === 0
  }

  add(interceptor: CallInterceptor): void {
    this.list = [...this.list, interceptor]
  }

  remove(interceptor: CallInterceptor): void {
    const at = this.list.indexOf(interceptor)
    if (at >= 0) this.list = this.list.filter((_, i) => i !== at)
  }

  /** A request is about to be sent. Returns `waiting`, wrapped if an interceptor wants to know its outcome. @throws what an interceptor throws */
  outgoing(out: OutgoingMessage, to: WorkerInfo, waiting: PendingCall): PendingCall {
    const { host, list } = this
    const call = seen(out, host.info, to)
    if (call === null) return waiting
    const startMs = host.clock.now()
    let headers: Record<string, HeaderValue> | null = null
    const outgoing: OutgoingCall = {
      ...call,
      get headers() {
        return headers ?? NO_HEADERS
      },
      setHeader(name, value) {
        headers = { ...headers, [name]: checkHeader(name, value) }
      },
    }
    const ends: ((outcome: CallOutcome) => void)[] = []
    const end = (error: unknown) => {
      const outcome = { error, elapsedMs: host.clock.now() - startMs }
      for (const tell of ends.reverse()) {
        try {
          tell(outcome)
        } catch (bug) {
          host.onBug(bug)
        }
      }
    }
    try {
      for (const interceptor of list) {
        const tell = interceptor.outgoing?.(outgoing)
        if (typeof tell === 'function') ends.push(tell)
        else if (isThenable(tell)) throw cannotWait(tell, call.functionName)
      }
    } catch (error) {
      end(error)
      throw error
    }
    if (headers !== null) setHeaders(out, headers)
    return ends.length === 0 ? waiting : new ObservedCall(waiting, end)
  }

  /** Runs a request's function inside of the interceptors. */
  serve(message: Message, from: WorkerInfo, run: () => unknown): unknown {
    const call = seen(message, from, this.host.info)
    if (call === null) return run()
    const info: CallInfo = { ...call, headers: headersOf(message) ?? NO_HEADERS }
    let next = run
    for (const interceptor of [...this.list].reverse()) {
      if (interceptor.incoming === undefined) continue
      const inner = next
      next = () => interceptor.incoming!(info, once(inner))
    }
    return next()
  }
}

/** The pending call; `end` notifies interceptors. */
class ObservedCall implements PendingCall {
  parent: ServedCall | null = null
  deadlineMs = Number.POSITIVE_INFINITY
  readonly op: string
  readonly onItem?: (item: StreamItem) => boolean
  readonly onCancelled?: (error: unknown) => void
  private readonly inner: PendingCall
  private readonly end: (error: unknown) => void

  constructor(inner: PendingCall, end: (error: unknown) => void) {
    this.inner = inner
    this.op = inner.op
    this.end = end
    if (inner.onItem !== undefined) this.onItem = (item) => inner.onItem!(item)
    if (inner.onCancelled !== undefined) {
      this.onCancelled = (error) => {
        end(error)
        inner.onCancelled!(error)
      }
    }
  }

  onReply(message: Message): void {
    this.end(null)
    this.inner.onReply(message)
  }

  onError(error: unknown, ofCleanUp?: boolean): void {
    this.end(error)
    this.inner.onError(error, ofCleanUp)
  }

  /** It was not sent: its maker gets an exception. */
  unsent(error: unknown): void {
    this.end(error)
  }

  timedOut(isInherited: boolean): PostgradError {
    return this.inner.timedOut(isInherited)
  }
}

const NO_HEADERS: CallHeaders = Object.freeze({})

/** Null for what interceptors of users do not see. */
function seen({ type, body }: Pick<Message, 'type' | 'body'>, from: WorkerInfo, to: WorkerInfo): Omit<CallInfo, 'headers'> | null {
  const kind = KINDS.get(type)
  if (kind === undefined) return null
  if (kind === 'fetch') return { kind, functionName: 'toHere', isMethod: false, from, to }
  const [name, args] = body
  // A stream of something odd is refused where it is served.
  if (typeof name !== 'string' || !Array.isArray(args)) return null
  if (name === STREAM_CALL) {
    const inner = seen({ type, body: args }, from, to)
    return inner === null ? null : { ...inner, kind: 'stream' }
  }
  if (name === METHOD_CALL) return { kind, functionName: plainText(args[1]), isMethod: true, from, to }
  return name.startsWith(BUILT_IN) ? null : { kind, functionName: name, isMethod: false, from, to }
}

function once(next: () => unknown): () => unknown {
  let isDone = false
  return () => {
    if (isDone) {
      throw new PostgradError('INTERCEPTOR_NEXT_TWICE', {
        op: 'intercept',
        message: 'an interceptor called next() a second time for the same call',
        remedy: 'A call is never repeated at the callee; keep what the first next() gave.',
      })
    }
    isDone = true
    return next()
  }
}

/** @throws INVALID_ARGUMENT */
function checkHeader(name: string, value: HeaderValue): HeaderValue {
  if (typeof name === 'string' && name !== '' && isHeaderValue(value)) return value
  throw new PostgradError('INVALID_ARGUMENT', {
    op: 'setHeader',
    expected: 'a name and a string, number, boolean, bigint or null',
    got: typeof name === 'string' ? `'${name}' and a value of type ${typeof value}` : typeof name,
    remedy: 'Turn other values into text: JSON.stringify(value).',
  })
}

/** A call is sent in the turn in which it is made, or calls would change places. */
function cannotWait(promise: PromiseLike<unknown>, op: string): PostgradError {
  promise.then(undefined, () => {})
  return new PostgradError('INVALID_ARGUMENT', {
    op,
    expected: 'an interceptor whose outgoing returns a function or nothing',
    got: 'a promise',
    remedy: 'Make outgoing a function that is not async: a call is sent at once. incoming may wait.',
  })
}
