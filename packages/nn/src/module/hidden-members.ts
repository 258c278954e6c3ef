/**
 * Finds modules and parameters in fields that no walk sees: `#private`, under symbols, or not enumerable. They would be neither trained nor saved, so the
 * first walk for parameters or state fails. `private-fields.ts` asks the engine for the first kind.
 */
import { isVariable } from '@postgrad/autograd/internal'
import { PostgradError } from '@postgrad/base'
import { isTensor } from '@postgrad/tensor'
import { collectionsIn, eachItem, isPlain } from './collections.js'
import { namesPrivateFields, privateFields } from './private-fields.js'

/** The needed part of a module. */
interface Tree {
  modules(): readonly object[]
}

/**
 * Refuses what `modules` hide, unless `reached` has it or it has its holder below itself.
 * @param base the prototype at which the classes of modules end
 * @throws MODULE_HIDDEN
 */
export function ensureNothingHidden(op: string, modules: readonly Tree[], base: object, reached: () => ReadonlySet<object>): void {
  const hidden: string[] = []
  let seen: ReadonlySet<object> | null = null
  for (const module of modules) {
    for (const [field, value] of unseen(module, base)) {
      eachItem(field, value, (path, item) => {
        const isModule = isTree(base, item)
        if (!isModule && !(isTensor(item) && isVariable(item))) return
        seen ??= reached()
        if (seen.has(item) || (isModule && item.modules().includes(module))) return
        hidden.push(`${path} of ${module.constructor.name} (${isModule ? item.constructor.name : 'a parameter'})`)
      })
    }
  }
  if (hidden.length === 0) return
  throw new PostgradError('MODULE_HIDDEN', {
    op,
    message: `a module finds its parts in enumerable, named fields. It does not see these fields, which would not be trained or saved: ${hidden.join(', ')}`,
    remedy:
      "Make it an ordinary field; TypeScript's `private` and a name like _layer are fine. Hold a module that must not belong to this one as a function: #layer = () => layer.",
    values: { hidden },
  })
}

function isTree(base: object, item: object): item is Tree {
  return Object.prototype.isPrototypeOf.call(base, item)
}

/** Names and values of fields that walks do not see, and of such keys of plain objects in fields. */
function unseen(module: object, base: object): [name: string, value: object][] {
  const found = unseenKeys('', module)
  for (const [field, value] of Object.entries(module)) {
    if (typeof value !== 'object' || value === null) continue
    for (const each of collectionsIn(value)) if (isPlain(each)) found.push(...unseenKeys(`${field}.`, each))
  }
  if (namesPrivateFields(module, base)) found.push(...privateFields(module))
  return found
}

function unseenKeys(prefix: string, object: object): [name: string, value: object][] {
  const found: [string, object][] = []
  for (const key of Reflect.ownKeys(object)) {
    const { value, enumerable } = Object.getOwnPropertyDescriptor(object, key)!
    if (enumerable === true && typeof key === 'string') continue
    if (typeof value === 'object' && value !== null) found.push([`${prefix}${typeof key === 'symbol' ? `[${String(key)}]` : key}`, value])
  }
  return found
}
