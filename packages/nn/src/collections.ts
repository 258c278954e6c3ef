/**
 * The collections in which a module's fields may hold what belongs to it: arrays, Maps, Sets and plain objects, to any depth. An instance of another
 * class is none, so what it holds is its own. Above: `module.ts`, which says what of it belongs to a module.
 */

type Item = (name: string, item: object) => void
type Change = (item: object) => object

/** Calls `visit` with each object in `value` that is no collection, and with its path below `name`; '' as a name adds nothing to paths. */
export function eachItem(name: string, value: object, visit: Item, above: Above = null): void {
  if (Array.isArray(value)) {
    if (isBelow(value, above)) return
    const path = { value, above }
    for (let i = 0; i < value.length; i++) below(name, i, value[i], visit, path)
  } else if (value instanceof Map) {
    if (isBelow(value, above)) return
    const path = { value, above }
    for (const [key, item] of value) below(name, String(key), item, visit, path)
  } else if (value instanceof Set) {
    if (isBelow(value, above)) return
    const path = { value, above }
    let i = 0
    for (const item of value) below(name, i++, item, visit, path)
  } else if (isPlain(value)) {
    if (isBelow(value, above)) return
    const path = { value, above }
    for (const key in value) below(name, key, (value as Record<string, unknown>)[key], visit, path)
  } else visit(name, value)
}

/** Puts what `change` returns in the place of each object in the collection `value` that is none itself. */
export function replaceItems(value: object, change: Change, above: Above = null): void {
  if (isBelow(value, above)) return
  const path = { value, above }
  const other = (item: unknown): unknown => {
    if (typeof item !== 'object' || item === null) return item
    if (!isCollection(item)) return change(item)
    replaceItems(item, change, path)
    return item
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const next = other(value[i])
      if (next !== value[i]) value[i] = next
    }
  } else if (value instanceof Map) {
    for (const [key, item] of value) value.set(key, other(item))
  } else if (value instanceof Set) {
    const items = [...value].map(other)
    value.clear()
    for (const item of items) value.add(item)
  } else {
    const fields = value as Record<string, unknown>
    for (const key in fields) {
      const next = other(fields[key])
      if (next !== fields[key]) fields[key] = next
    }
  }
}

export function isCollection(value: object): boolean {
  return isPlain(value) || Array.isArray(value) || value instanceof Map || value instanceof Set
}

/** The collections on the way to one, so that one that holds itself ends the walk. */
type Above = { readonly value: object; readonly above: Above } | null

function isBelow(value: object, above: Above): boolean {
  for (let each = above; each !== null; each = each.above) if (each.value === value) return true
  return false
}

function below(name: string, key: string | number, item: unknown, visit: Item, path: Above): void {
  if (typeof item === 'object' && item !== null) eachItem(name === '' ? `${key}` : `${name}.${key}`, item, visit, path)
}

/** Of any realm: the prototype is null, or has none itself. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
