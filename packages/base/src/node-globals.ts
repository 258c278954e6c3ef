/**
 * Node's own globals, in any environment: jest-environment-jsdom puts a browser's globals in their place, and leaves these out. Node itself has them in the
 * context that it began with.
 */
import { runInThisContext } from 'node:vm'

// The types are written out, since declarations would name the package `util` otherwise.
const ofNode = (name: string) => runInThisContext(name)

export const TextEncoder: typeof globalThis.TextEncoder = ofNode('TextEncoder')
export const TextDecoder: typeof globalThis.TextDecoder = ofNode('TextDecoder')
export const structuredClone: typeof globalThis.structuredClone = ofNode('structuredClone')
