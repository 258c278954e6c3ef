/**
 * Jest's runtime, but that Node itself loads the test files of `bundled-tree.mjs`, once for a process of jest. Jest would compile the whole library anew for
 * each file, in a context where each look at a global is slow, and V8 would begin again to find out what is hot.
 * So the files of a process share their modules and globals: a test puts back what it changes. What a file has exposed gives way to what the next ones expose.
 */
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

/** Jest's own, which is a part of its configuration. */
const ofJest = ['jest', 'jest-cli', '@jest/core', 'jest-runner'].reduce((load, name) => createRequire(load.resolve(name)), require)
const { default: Runtime } = ofJest('jest-runtime')

/** What a thread exposes by name. Whoever exposes does not see the names of other files, so that there is no conflict with them. */
class NamesOfFiles extends Map {
  file = 0
  isExposing = false
  fileOf = new Map()
  displaced = []

  has(name) {
    return super.has(name) && !this.isHidden(name)
  }

  get(name) {
    return this.isHidden(name) ? undefined : super.get(name)
  }

  set(name, exposed) {
    if (super.has(name)) this.displaced.push([name, super.get(name), this.fileOf.get(name)])
    this.fileOf.set(name, this.file)
    return super.set(name, exposed)
  }

  isHidden(name) {
    return this.isExposing && this.fileOf.get(name) !== this.file
  }

  /** A module that is loaded already exposes its functions once: they get their names back. */
  nextFile() {
    for (const [name, exposed, file] of this.displaced.splice(0).reverse()) {
      super.set(name, exposed)
      this.fileOf.set(name, file)
    }
    this.file++
  }
}

let names = null

/** Once for a process. */
function namesOfFiles() {
  const { threadRegistry } = require(join(process.env.POSTGRAD_TREE, 'dist/base/load.cjs')).load().rpc_dist_common_function_registry
  const names = new NamesOfFiles()
  for (const [name, exposed] of threadRegistry.byName) names.set(name, exposed)
  threadRegistry.byName = names
  const { expose } = threadRegistry
  threadRegistry.expose = (record) => {
    names.isExposing = true
    try {
      expose.call(threadRegistry, record)
    } finally {
      names.isExposing = false
    }
  }
  return names
}

module.exports = class NodeLoads extends Runtime {
  unstable_shouldLoadAsEsm() {
    return true
  }

  unstable_importModule(path) {
    names ??= namesOfFiles()
    names.nextFile()
    return import(pathToFileURL(path).href)
  }
}
