/**
 * An object whose properties are the methods of a value elsewhere: `rref.rpcAsync().add(1)`. It has no list of names: each property is a function
 * that passes its name and arguments on, and the value's owner checks whether there is such a method. `rref.ts` has the types.
 * PyTorch: `torch/distributed/rpc/rref_proxy.py`, which asks the owner for the value's type first; here nothing needs to be asked.
 */

/** Reusable: each use of a property is a call of its own. A property that is read and not called costs nothing. */
export function methodProxy(invoke: (method: string, args: readonly unknown[]) => unknown): object {
  return new Proxy(
    {},
    {
      get(target, key) {
        // Properties that the language and printing tools read of any object are not sent: with a `then`, `await` would take the proxy for a
        // promise, and logging it as JSON would call `toJSON`.
        if (typeof key === 'symbol' || key === 'then' || key === 'toJSON' || key in Object.prototype) return Reflect.get(target, key)
        return (...args: unknown[]) => invoke(key, args)
      },
    },
  )
}
