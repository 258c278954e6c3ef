/**
 * An object whose properties are the methods of a value elsewhere: `rref.rpcAsync().add(1)`. It knows no names of its own: each property is a function
 * that hands its name and arguments on, and the value's owner says whether there is such a method. `rref.ts` above gives the types.
 * PyTorch: `torch/distributed/rpc/rref_proxy.py`, which asks the owner for the value's type first; here nothing needs to be asked.
 */

/** Reusable: each use of a property is a call of its own. A property that is read and not called costs nothing. */
export function methodProxy(invoke: (method: string, args: readonly unknown[]) => unknown): object {
  return new Proxy(
    {},
    {
      get(target, key) {
        // What the language and tools that print ask of any object is not sent; with a `then`, `await` would take the proxy for a promise, and
        // whoever logs it as JSON would call a `toJSON`.
        if (typeof key === 'symbol' || key === 'then' || key === 'toJSON' || key in Object.prototype) return Reflect.get(target, key)
        return (...args: unknown[]) => invoke(key, args)
      },
    },
  )
}
