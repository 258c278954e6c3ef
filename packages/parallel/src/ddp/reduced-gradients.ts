/** The last node of a pass, after the reduction of all buckets: no gradient leads to it. The reducer queues it when all are back, or one has failed. */
import { type Grads, HIGHEST_PRIORITY, Node } from '@postgrad/autograd/internal'

export class ReducedGradients extends Node {
  results: readonly unknown[] = []
  error: unknown = null
  private readonly finish: (results: readonly unknown[]) => void

  constructor(finish: (results: readonly unknown[]) => void) {
    super([], [], HIGHEST_PRIORITY)
    this.finish = finish
  }

  get name(): string {
    return 'ReducedGradients'
  }

  apply(): Grads {
    if (this.error !== null) throw this.error
    this.finish(this.results)
    return []
  }
}
