/**
 * What Node has as globals, in whatever environment this code is run: jest-environment-jsdom puts a browser's globals in their place, and leaves these out. Node itself has them in the
 * context that it began with.
 */
import { runInThisContext } from 'node:vm'

const ofNode = <T>(name: string): T => runInThisContext(name) as T

export const TextEncoder = ofNode<typeof globalThis.TextEncoder>('TextEncoder')
export const TextDecoder = ofNode<typeof globalThis.TextDecoder>('TextDecoder')
export const structuredClone = ofNode<typeof globalThis.structuredClone>('structuredClone')
