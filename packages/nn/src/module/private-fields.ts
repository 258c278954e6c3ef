/**
 * Reads the #private fields of an object. Only the class can see them, so this asks the engine's inspector, in the same thread. Without
 * an inspector (a runtime without it, a policy that forbids it) they stay unseen. Slow (0.5 ms), so only for objects whose class names such fields.
 */
import type { Session } from 'node:inspector'
import { builtin } from '@postgrad/base/internal'

interface Remote {
  readonly result: { readonly objectId?: string }
}
interface Properties {
  readonly privateProperties?: readonly { readonly name: string; readonly value?: { readonly objectId?: string } }[]
}

/** A name in the global object of the inspector's realm, there while it is asked. */
const SLOT = '__postgradPrivateFields'

/** Names with their # and values, of those fields that hold objects. */
export function privateFields(object: object): ReadonlyMap<string, object> {
  const found = new Map<string, object>()
  const Inspector = inspector()
  if (Inspector === null) return found
  const session = new Inspector()
  // Under jest the program's global object is another than the inspector's, to which the inspector's own functions lead.
  const realm = (Inspector.constructor as FunctionConstructor)('return globalThis')() as Record<string, unknown>
  try {
    session.connect()
    realm[SLOT] = { object, found }
    const it = ask<Remote>(session, 'Runtime.evaluate', { expression: `${SLOT}.object` })
    const { privateProperties = [] } = ask<Properties>(session, 'Runtime.getProperties', {
      objectId: it.result.objectId,
      ownProperties: true,
    })
    const { result } = ask<Remote>(session, 'Runtime.evaluate', { expression: `${SLOT}.found` })
    for (const { name, value } of privateProperties) {
      if (value?.objectId === undefined) continue
      ask(session, 'Runtime.callFunctionOn', {
        objectId: result.objectId,
        functionDeclaration: 'function (name, value) { this.set(name, value) }',
        arguments: [{ value: name }, { objectId: value.objectId }],
      })
    }
  } catch {
    // A policy of the process forbids the inspector: these fields stay unseen.
  } finally {
    delete realm[SLOT]
    // Lets go of all objects that it was asked about.
    session.disconnect()
  }
  return found
}

/** Whether the text of a class between the object's own and `base` has a private name. */
export function namesPrivateFields(object: object, base: object): boolean {
  let prototype = Object.getPrototypeOf(object) as object
  for (; prototype !== null && prototype !== base; prototype = Object.getPrototypeOf(prototype)) {
    if (hasPrivateName(prototype.constructor)) return true
  }
  return false
}

const texts = new WeakMap<object, boolean>()

function hasPrivateName(type: unknown): boolean {
  if (typeof type !== 'function') return false
  let known = texts.get(type)
  if (known === undefined) {
    known = /#[\p{ID_Start}$_]/u.test(Function.prototype.toString.call(type))
    texts.set(type, known)
  }
  return known
}

/** The answer, which comes at once for questions to one's own thread. */
function ask<R>(session: Session, method: string, params: object): R {
  let answer: { error: Error | null; result: unknown } = { error: new Error(`no answer to ${method}`), result: null }
  session.post(method, params, (error, result) => {
    answer = { error, result }
  })
  if (answer.error !== null) throw answer.error
  return answer.result as R
}

let loaded: typeof Session | null | undefined

function inspector(): typeof Session | null {
  if (loaded !== undefined) return loaded
  try {
    loaded = builtin<{ Session: typeof Session }>('node:inspector').Session
    // Refused where text may not become code.
    ;(loaded.constructor as FunctionConstructor)('return globalThis')
  } catch {
    loaded = null
  }
  return loaded
}
