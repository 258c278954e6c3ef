/** Replaces modules in a tree, to convert layers. `collections.ts` says where fields may hold them. */
import { isCollection, replaceItems } from './collections.js'
import { Module } from './module.js'

/**
 * Puts what `change` gives in the place of each module of the tree, once for each, in the order of `modules()`; those that it gives are not looked into. A module
 * that several fields hold is replaced in all of them by one. Hooks stay with the module that they were registered on.
 * @returns the root, or what has come in its place
 */
export function replaceModules(root: Module, change: (module: Module) => Module): Module {
  const modules = root.modules()
  const changed = new Map(modules.map((module) => [module, change(module)]))
  const other = (item: object): object => (item instanceof Module ? (changed.get(item) ?? item) : item)
  for (const module of modules) {
    const fields = module as unknown as Record<string, unknown>
    for (const field in fields) {
      const value = fields[field]
      if (typeof value !== 'object' || value === null) continue
      if (isCollection(value)) replaceItems(value, other)
      else if (other(value) !== value) fields[field] = other(value)
    }
  }
  return changed.get(root)!
}
