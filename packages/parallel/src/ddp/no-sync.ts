/**
 * Which models' passes are this rank's alone in the running code. `noSync` lies in the scope, which follows a program through its awaits: so a forward that runs at the same time as `noSync`, and
 * outside of its function, is reduced, and several `noSync` may run at once.
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
