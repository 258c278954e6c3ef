/** Functions that others may call: exposing, naming, looking up. */
import { describe, expect, test } from '@jest/globals'
import { thrown } from '../worker/sim-cluster.suite.js'
import { type AnyClass, type AnyFunction, FunctionRegistry } from './function-registry.js'

const add = (a: number, b: number) => a + b
const subtract = (a: number, b: number) => a - b
class Observer {
  see(): number {
    return 1
  }
}
class Blind extends Observer {}

describe('exposing', () => {
  test('RPC-6: the same pair again is no error, another function under a taken name is', () => {
    const registry = new FunctionRegistry()
    registry.expose({ add })
    registry.expose({ add })
    expect(thrown(() => registry.expose({ add: subtract }))).toMatchObject({ code: 'EXPOSE_CONFLICT', values: { name: 'add' } })
    expect(registry.lookup('add', 'w').target).toBe(add)
  })

  test('RPC-6: a record is taken as a whole or not at all', () => {
    const registry = new FunctionRegistry()
    registry.expose({ add })
    expect(thrown(() => registry.expose({ subtract, add: subtract })).code).toBe('EXPOSE_CONFLICT')
    expect(thrown(() => registry.expose({ subtract, five: 5 as unknown as AnyFunction })).code).toBe('EXPOSE_NOT_CALLABLE')
    expect(thrown(() => registry.lookup('subtract', 'w')).code).toBe('FUNCTION_NOT_EXPOSED')
    expect(thrown(() => registry.nameOf(subtract)).code).toBe('FUNCTION_NOT_EXPOSED')
  })

  test.each([5, 'add', null, undefined, {}, [add]])('RPC-6: %p is not callable', (value) => {
    const error = thrown(() => new FunctionRegistry().expose({ value: value as unknown as AnyFunction }))
    expect(error.code).toBe('EXPOSE_NOT_CALLABLE')
    expect(error.message).toContain("'value'")
  })

  test('RPC-6: what is no record of functions is refused with what to write, also a function or a class without braces', () => {
    const registry = new FunctionRegistry()
    const square = (x: number) => x * x
    class Net {}
    const refused: readonly [given: unknown, got: string, remedy: string][] = [
      [square, 'the function square', 'expose({ square })'],
      [Net, 'the class Net', 'expose({ Net })'],
      [() => 1, 'the function', 'expose({ fn })'],
      [null, 'null', 'expose({ fn })'],
      [undefined, 'undefined', 'expose({ fn })'],
      ['square', 'string', 'expose({ fn })'],
      [[square], 'a list', 'expose({ fn })'],
      [{ [Symbol('square')]: square }, 'Symbol(square) as a name', 'expose({ fn })'],
    ]
    for (const [given, got, remedy] of refused) {
      const error = thrown(() => registry.expose(given as never))
      expect(error).toMatchObject({ code: 'EXPOSE_NOT_CALLABLE', op: 'expose' })
      expect(error.message).toContain(`got ${got}`)
      expect(error.message).toContain(remedy)
    }
    expect(thrown(() => registry.nameOf(square)).code).toBe('FUNCTION_NOT_EXPOSED')
    registry.expose({})
    // A module as it is imported: what it has under symbols is none of its exports.
    registry.expose(Object.defineProperty({ square }, Symbol.toStringTag, { value: 'Module', enumerable: false }))
    expect(registry.nameOf(square)).toBe('square')
  })

  test('RPC-6: a function with several names is called by the first, and answers to all', () => {
    const registry = new FunctionRegistry()
    registry.expose({ plus: add })
    registry.expose({ add })
    expect(registry.nameOf(add)).toBe('plus')
    expect(registry.lookup('add', 'w').target).toBe(add)
  })

  test('RPC-5: what is not exposed is named in the error, with the remedy', () => {
    const error = thrown(() => new FunctionRegistry().nameOf(add))
    expect(error).toMatchObject({ code: 'FUNCTION_NOT_EXPOSED', values: { function: 'add' } })
    expect(error.message).toContain('expose({ add })')
    expect(thrown(() => new FunctionRegistry().lookup('add', 'ps')).message).toContain("worker 'ps'")
  })

  test('RPC-5: a name in place of a function is refused', () => {
    const registry = new FunctionRegistry()
    registry.expose({ add })
    for (const value of ['add', 5, null, undefined, {}]) {
      expect(thrown(() => registry.nameOf(value as unknown as AnyFunction)).code).toBe('NOT_CALLABLE')
    }
  })
})

describe('classes', () => {
  const method = {
    class(): string {
      return 'a method of that name'
    },
  }.class
  const cases: [string, AnyFunction | AnyClass, boolean][] = [
    ['a class', Observer, true],
    ['a class that extends another', Blind, true],
    ['a class without a name', class {}, true],
    ['an arrow function', add, false],
    ['a function', function classify() {}, false],
    ['an async function', async () => {}, false],
    ['a generator', function* generate() {}, false],
    ['a method named class', method, false],
    ['a bound function', add.bind(null), false],
    ['a built-in function', Math.max, false],
  ]
  test.each(cases)('RPC-7: %s', (_, target, isClass) => {
    const registry = new FunctionRegistry()
    registry.expose({ target })
    expect(registry.lookup('target', 'w').isClass).toBe(isClass)
  })

  test('RREF-6: instances of an exposed class and of classes that extend it are known, others are not', () => {
    const registry = new FunctionRegistry()
    registry.expose({ Observer, add })
    expect(registry.mayCall(new Observer(), 'look')).toBe(true)
    expect(registry.mayCall(new Blind(), 'look')).toBe(true)
    for (const value of [{}, [], new Map(), new (class Other {})(), Object.create(null), add, new Date()]) {
      expect(registry.mayCall(value, 'look')).toBe(false)
    }
  })

  test('RREF-28: of a class whose methods are exposed, and of those that extend it, these can be called and nothing else; it cannot be made', () => {
    const registry = new FunctionRegistry()
    registry.exposeMethods(Observer, ['see'])
    for (const value of [new Observer(), new Blind()]) {
      expect(registry.mayCall(value, 'see')).toBe(true)
      expect(registry.mayCall(value, 'look')).toBe(false)
      expect(registry.mayCall(value, 'constructor')).toBe(false)
    }
    expect(registry.mayCall({}, 'see')).toBe(false)
    expect(thrown(() => registry.nameOf(Observer)).code).toBe('FUNCTION_NOT_EXPOSED')
    expect(thrown(() => registry.lookup('Observer', 'w')).code).toBe('FUNCTION_NOT_EXPOSED')
  })

  test('RREF-6: an object whose constructor is a function that is exposed, but no class, is not known', () => {
    const registry = new FunctionRegistry()
    function Old() {}
    registry.expose({ Old })
    expect(registry.mayCall(Object.create(Old.prototype as object), 'look')).toBe(false)
  })
})

describe('names from elsewhere', () => {
  test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf', 'prototype', ''])('RPC-8: %p is no function', (name) => {
    const registry = new FunctionRegistry()
    registry.expose({ add })
    expect(thrown(() => registry.lookup(name, 'w')).code).toBe('FUNCTION_NOT_EXPOSED')
  })

  test('RPC-8: such a name may be exposed like any other', () => {
    const registry = new FunctionRegistry()
    registry.expose({ toString: add, constructor: subtract })
    expect(registry.lookup('toString', 'w').target).toBe(add)
    expect(registry.nameOf(subtract)).toBe('constructor')
  })
})
