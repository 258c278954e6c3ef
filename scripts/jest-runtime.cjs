/**
 * Jest's runtime, except that Node itself loads the test files of `bundled-tree.mjs`, once in a process of jest; `jest.config.js` sets it. Jest would compile the whole library anew for
 * each file, in a context where each look at a global is slow, and V8 would begin again to find out what is hot.
 * So the files of a process share their modules and globals: a test puts back what it changes.
 */
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const ofJest = require('./of-jest.cjs')

const { default: Runtime } = ofJest('@jest/core', 'jest-runner')('jest-runtime')

/**
 * The names that this thread exposes. Files may give the same name to functions of their own, as if each had a thread of its own: `expose` does not see the names of
 * other files, and a name that is called by its function is that function's again.
 */
class ExposedNames {
  file = 0
  fileOf = new Map()

  constructor({ threadRegistry }) {
    const { byName, byTarget, expose, nameOf } = threadRegistry
    threadRegistry.expose = (record) => {
      const others = [...byName].filter(([name]) => this.fileOf.get(name) !== this.file)
      for (const [name] of others) byName.delete(name)
      try {
        expose.call(threadRegistry, record)
      } finally {
        for (const name of byName.keys()) this.fileOf.set(name, this.file)
        for (const [name, exposed] of others) if (!byName.has(name)) byName.set(name, exposed)
      }
    }
    threadRegistry.nameOf = (target) => {
      const name = nameOf.call(threadRegistry, target)
      byName.set(name, byTarget.get(target))
      return name
    }
  }
}

let names = null

module.exports = class NodeLoads extends Runtime {
  unstable_shouldLoadAsEsm() {
    return true
  }

  unstable_importModule(path) {
    names ??= new ExposedNames(require(join(process.env.POSTGRAD_TREE, 'dist/base/load.cjs')).load().rpc_dist_common_function_registry)
    names.file++
    globalThis[Symbol.for('postgrad.jest')].loadsTests()
    return import(pathToFileURL(path).href)
  }
}
