/**
 * Knows in which models' `noSync` the running code is: passes there are this rank's alone. The scope has this, and follows a program through awaits. So a forward that runs at the same
 * time, but outside of the function, is reduced, and several `noSync` may run at once.
 */
import { currentScope, withScope } from '@postgrad/base/internal'

class Alone {
  readonly model: object
  readonly outer: Alone | null

  constructor(model: object, outer: Alone | null) {
    this.model = model
    this.outer = outer
  }
}

/** Whether the running code is inside of a `noSync` of this model. */
export function isQuiet(model: object): boolean {
  let each = currentScope().alone as Alone | null
  while (each !== null && each.model !== model) each = each.outer
  return each !== null
}

/** Runs `fn`, inside of which passes of this model are this rank's alone. */
export function quietly<T>(model: object, fn: () => T): T {
  return withScope({ alone: new Alone(model, currentScope().alone as Alone | null) }, fn)
}
