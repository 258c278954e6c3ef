/** One call of an actor's method, with all that is needed to run it later. `actor-cell.ts` queues, stashes and runs it. */
import type { Scope } from '@postgrad/base/internal'

export interface InvokeOptions {
  readonly endsAtReturn?: boolean
  readonly isOwn?: boolean
}

export class Invocation {
  readonly method: string
  readonly run: () => unknown
  /** The scope in which it was called, in which it runs whenever that is. */
  readonly scope: Scope
  resolve: (value: unknown) => void = () => {}
  reject: (error: unknown) => void = () => {}
  /** It gave its turn up, to be run again. */
  isStashed = false

  /** Its function has ended when it returns, though what it returns may settle later (`asyncExecution`). */
  readonly endsAtReturn: boolean
  /** A self-send or a timer: nobody waits for it. */
  readonly isOwn: boolean

  constructor(method: string, run: () => unknown, scope: Scope, { endsAtReturn = false, isOwn = false }: InvokeOptions) {
    this.method = method
    this.run = run
    this.scope = scope
    this.endsAtReturn = endsAtReturn
    this.isOwn = isOwn
  }

  /** Its caller waits for this if it does not run at once. */
  promise(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }
}
