/**
 * Each collective returns one at once: a Future with PyTorch's words. It ends with the value, or with the error that ends the collective on this rank; it
 * never stays pending. PyTorch: `torch.distributed.Work`.
 */
import { Future } from '@postgrad/base'
import { endsGroup } from '../common/errors.js'

/**
 * A collective, `send` or `recv` that is under way. `await` it to get its result: the tensor that it has written, or the list of tensors. Until then its
 * tensors belong to the collective: do not write to them, and do not rely on their elements. PyTorch: `torch.distributed.Work`.
 * @example
 * const gradient = tensor([2, 4])
 * const work: Work<Tensor> = allReduce(gradient) // begins at once
 * const sum = await work // other work may come before this line
 * sum // [4, 8]
 */
export class Work<T> extends Future<T> {
  /** Whether the operation has ended, with a value or an error. PyTorch: `is_completed`. */
  isCompleted(): boolean {
    return this.done
  }

  /** Whether the operation has ended with a value. PyTorch: `is_success`. */
  isSuccess(): boolean {
    return this.done && this.exception() === null
  }

  /** The error of the operation; null if it has none so far. PyTorch: `exception`. */
  exception(): unknown {
    if (!this.done) return null
    try {
      this.value()
      return null
    } catch (error) {
      return error
    }
  }

  /** The value of the operation, if it has ended. PyTorch: `result`. @throws FUTURE_NOT_DONE if the operation has not ended; its error if it has failed */
  result(): T {
    return this.value()
  }

  /** Returns the work itself. PyTorch: `get_future`. */
  getFuture(): Future<T> {
    return this
  }

  /** @internal What ends a group ends many works, of which some may be awaited late or never. */
  override reject(error: unknown): void {
    if (this.done) return
    super.reject(error)
    if (endsGroup(error)) this.catch(() => {})
  }

  /** Makes a work that has failed with `error`. */
  static override rejected<T>(error: unknown): Work<T> {
    const work = new Work<T>()
    work.reject(error)
    return work
  }

  /** Makes a work that has ended with `value`. */
  static of<T>(value: T): Work<T> {
    const work = new Work<T>()
    work.resolve(value)
    return work
  }
}

// As of Future: `await` takes it as it is, and `then` gives plain promises.
Object.defineProperty(Work.prototype, 'constructor', { value: Promise, configurable: true, writable: true })
