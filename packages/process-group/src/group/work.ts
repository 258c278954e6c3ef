/**
 * Each collective returns one at once: a Future with PyTorch's words. It ends with the value, or with the error that ends the collective on this rank; it
 * never stays pending. PyTorch: `torch.distributed.Work`.
 */
import { Future } from '@postgrad/base'
import { endsGroup } from '../common/errors.js'

/**
 * A collective, `send` or `recv` that is under way. Awaiting it gives what the collective is about: the tensor that it has written, or the list of them. Its
 * tensors are the collective's until it has ended: nobody else writes to them, and what is in them meanwhile is not said.
 * @example
 * const gradient = tensor([2, 4])
 * const work: Work<Tensor> = allReduce(gradient) // begins at once
 * const sum = await work // other work may come before this line
 * sum // [4, 8]
 */
export class Work<T> extends Future<T> {
  /** Whether it has ended, with a value or an error. PyTorch: `is_completed`. */
  isCompleted(): boolean {
    return this.done
  }

  /** Whether it has ended with a value. PyTorch: `is_success`. */
  isSuccess(): boolean {
    return this.done && this.exception() === null
  }

  /** Its error; null while it has none. PyTorch: `exception`. */
  exception(): unknown {
    if (!this.done) return null
    try {
      this.value()
      return null
    } catch (error) {
      return error
    }
  }

  /** Its value, once it has ended. @throws FUTURE_NOT_DONE, its error. PyTorch: `result` */
  result(): T {
    return this.value()
  }

  /** Itself. PyTorch: `get_future`. */
  getFuture(): Future<T> {
    return this
  }

  /** @internal What ends a group ends many works, of which some may be awaited late or never. */
  override reject(error: unknown): void {
    if (this.done) return
    super.reject(error)
    if (endsGroup(error)) this.catch(() => {})
  }

  /** One that has failed already. */
  static override rejected<T>(error: unknown): Work<T> {
    const work = new Work<T>()
    work.reject(error)
    return work
  }

  /** One that has ended already. */
  static of<T>(value: T): Work<T> {
    const work = new Work<T>()
    work.resolve(value)
    return work
  }
}

// As of Future: `await` takes it as it is, and `then` gives plain promises.
Object.defineProperty(Work.prototype, 'constructor', { value: Promise, configurable: true, writable: true })
