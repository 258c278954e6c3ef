/**
 * Globals in tests. Jest runs a test file in a context of its own, in which each look at a global is slow: `Math.imul` was a fifth of the time of
 * tests that draw their cases. So modules get the usual ones as constants: the library, one file of CommonJS, as arguments (`jest.config.js`), test code by a line
 * at its head (`bundled-tree.mjs`). Nothing that a test replaces belongs here: timers, process, console.
 */
export const PASSED_ON = [
  ...[
    'Object',
    'Array',
    'String',
    'Number',
    'Boolean',
    'BigInt',
    'Symbol',
    'Map',
    'Set',
    'WeakMap',
    'WeakSet',
    'WeakRef',
    'FinalizationRegistry',
  ],
  ...[
    'Int8Array',
    'Uint8Array',
    'Int32Array',
    'Uint32Array',
    'Float32Array',
    'Float64Array',
    'ArrayBuffer',
    'SharedArrayBuffer',
    'DataView',
  ],
  ...[
    'Promise',
    'Error',
    'TypeError',
    'RangeError',
    'Math',
    'JSON',
    'Reflect',
    'Atomics',
    'AbortController',
    'structuredClone',
    'queueMicrotask',
  ],
]

/** The text of an ES module with such constants, on the line that is first anyway. A program with its interpreter there stays as it is. */
export function withGlobals(text) {
  const isUsed = (name) => new RegExp(`(?<![.\\w$])${name}\\b`).test(text)
  // A module that declares one of them has its own.
  const isOwn = (name) =>
    new RegExp(`\\b(?:const|let|var|class|function)\\s+${name}\\b|import[^;]*[{,\\s]${name}[},\\s][^;]*from`).test(text)
  const names = PASSED_ON.filter((name) => isUsed(name) && !isOwn(name))
  return names.length === 0 || text.startsWith('#!') ? text : `const { ${names.join(', ')} } = globalThis; ${text}`
}
