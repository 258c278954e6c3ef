/**
 * The type of values that may be sent: `Sendable<T>` is T, but what never travels (functions, symbols, promises, instances of classes, …) becomes a type
 * that says so. The compiler then refuses what `value-writer.ts` refuses with WIRE_UNSUPPORTED_VALUE; it leaves `unknown` and `any` to `value-writer.ts`.
 */
import type { Tensor } from '@postgrad/tensor'

/** The type that a compiler error shows for a value that cannot be sent. Its type argument says what to do instead. No value has this type. */
export interface CannotBeSent<Remedy extends string> {
  /** A sentence that says what to do instead. */
  readonly cannotBeSent: Remedy
}

/** Only for the compiler: nothing has this field at run time. A class whose instances travel (RRef, RemoteModule) says so by `declare readonly [travels]: true`. */
export declare const travels: unique symbol

/** The mark of a class whose instances can be sent, such as `RRef`. The compiler refuses other objects with methods; the type argument says what to do instead. */
export interface Travels<_Remedy extends string = string> {
  readonly [travels]: true
}

// biome-ignore lint/suspicious/noExplicitAny: code of any signature
type Code = ((...args: any[]) => unknown) | (abstract new (...args: any[]) => unknown)
type Weak = WeakMap<WeakKey, unknown> | WeakSet<WeakKey> | WeakRef<WeakKey>
type Items = Iterator<unknown, unknown, never> | AsyncIterator<unknown, unknown, never>
/** Taken as they are, without a look at their methods and at what they hold. */
type Whole = Tensor | Error | Date | RegExp | ArrayBuffer | ArrayBufferView | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>

/**
 * The type of an argument of type T that is sent to another worker. It is T, with `CannotBeSent` in place of each value that cannot be sent, also inside
 * arrays and plain objects. So the compiler refuses functions, symbols, promises, iterators, weak collections and shared memory.
 *
 * An object with a method counts as an instance of a class, and can be sent only if `Travels` marks its class.
 */
export type Sendable<T> = unknown extends T
  ? T
  : T extends string | number | boolean | bigint | null | undefined
    ? T
    : T extends Code
      ? CannotBeSent<'Code does not travel: send a name that the other worker looks up, or call the function here and send its result.'>
      : T extends symbol
        ? CannotBeSent<'A symbol does not travel: send a string.'>
        : T extends Whole | Travels
          ? T
          : T extends readonly unknown[]
            ? { [I in keyof T]: Sendable<T[I]> }
            : T extends PromiseLike<unknown>
              ? CannotBeSent<'A promise does not travel: await it and send its value.'>
              : T extends Weak
                ? CannotBeSent<'A weak collection does not travel: send an array or a Map.'>
                : T extends Items
                  ? CannotBeSent<'An iterator does not travel: take its items by stream(to, fn, args), or send an array of them.'>
                  : T extends SharedArrayBuffer
                    ? CannotBeSent<'Shared memory does not travel: send a typed array; its bytes are copied.'>
                    : HasMethod<T> extends true
                      ? T & (Instance | (T extends Iterable<unknown> ? string | readonly unknown[] | Whole : never))
                      : { [K in keyof T]: Sendable<T[K]> }

type Instance = Travels<'An instance of a class does not travel: send its data, or an RRef to it.'>
type HasMethod<T> = true extends { [K in keyof T]: T[K] extends Code ? true : never }[keyof T] ? true : false
