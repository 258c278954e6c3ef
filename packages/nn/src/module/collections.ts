/**
 * Walks the collections that a module's fields may hold members in: arrays, Maps, Sets and plain objects, to any depth. An instance of another
 * class is not a collection, and keeps its contents. `module.ts` decides which items are members.
 */

type Item = (name: string, item: object) => void
type Change = (item: object) => object

/**
 * Calls `visit` with each object in `value` that is not a collection, and with its path below `name`; the name '' adds nothing to paths. If several
 * paths lead to a collection, only the first is walked: a graph of plain objects may have too many. Without recursion, which fails at
 * some thousand levels: a linked list may have more.
 */
export function eachItem(name: string, value: object, visit: Item): void {
  if (!isCollection(value)) {
    visit(name, value)
    return
  }
  // Nearly all are flat; walks are on the way of every training step.
  if (!hasNested(value)) {
    const keys = keysOf(value)
    const items = itemsOf(value)
    for (let i = 0; i < items.length; i++) {
      const item = items[i]
      if (typeof item === 'object' && item !== null) visit(pathOf(name, keys === null ? i : keys[i]), item)
    }
    return
  }
  const seen = new Set<object>()
  const ahead: (readonly [path: string, value: object])[] = [[name, value]]
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    const [path, at] = next
    if (!isCollection(at)) visit(path, at)
    if (!isCollection(at) || seen.has(at)) continue
    seen.add(at)
    const keys = keysOf(at)
    const items = itemsOf(at)
    // The first item is put on top.
    for (let i = items.length - 1; i >= 0; i--) {
      const item = items[i]
      if (typeof item === 'object' && item !== null) ahead.push([pathOf(path, keys === null ? i : keys[i]), item])
    }
  }
}

function pathOf(above: string, key: unknown): string {
  return above === '' ? String(key) : `${above}.${String(key)}`
}

function hasNested(value: object): boolean {
  for (const item of itemsOf(value)) if (typeof item === 'object' && item !== null && isCollection(item)) return true
  return false
}

/** `value`, if it is a collection, and all that lie in it, each once. */
export function collectionsIn(value: object): ReadonlySet<object> {
  const seen = new Set<object>(isCollection(value) ? [value] : [])
  // Those that are added on the way come as well.
  for (const at of seen) for (const item of itemsOf(at)) if (typeof item === 'object' && item !== null && isCollection(item)) seen.add(item)
  return seen
}

/** Puts what `change` returns in the place of each object in the collection `value` that is none itself. */
export function replaceItems(value: object, change: Change): void {
  const seen = new Set<object>([value])
  const other = (item: unknown): unknown => {
    if (typeof item !== 'object' || item === null) return item
    if (!isCollection(item)) return change(item)
    seen.add(item)
    return item
  }
  // Those that are added on the way come as well.
  for (const at of seen) {
    const items = itemsOf(at)
    const next = items.map(other)
    if (next.every((item, i) => item === items[i])) continue
    const keys = keysOf(at)
    if (at instanceof Set) {
      at.clear()
      for (const item of next) at.add(item)
    } else if (at instanceof Map) for (const [i, item] of next.entries()) at.set(keys![i], item)
    else
      for (const [i, item] of next.entries())
        if (item !== items[i]) (at as Record<PropertyKey, unknown>)[keys === null ? i : (keys[i] as string)] = item
  }
}

/** The keys of a Map or plain object; null where they are 0, 1, 2, …. */
function keysOf(value: object): readonly unknown[] | null {
  if (Array.isArray(value) || value instanceof Set) return null
  return value instanceof Map ? [...value.keys()] : Object.keys(value)
}

/** In the order of the keys. */
function itemsOf(value: object): readonly unknown[] {
  if (Array.isArray(value)) return value
  return value instanceof Map || value instanceof Set ? [...value.values()] : Object.values(value)
}

export function isCollection(value: object): boolean {
  return Array.isArray(value) || value instanceof Map || value instanceof Set || isPlain(value)
}

/** Of any realm: the prototype is null, or has none itself. */
export function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
