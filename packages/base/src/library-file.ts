/** Functions of `load.cts`, where the library is one file. Where it is modules, as tsc made them, `__load` is missing. */
declare const __load:
  | {
      readonly shareCode: () => void
      readonly keepCode: () => void
      readonly importUrl: (url: string) => Promise<unknown>
      readonly importJson: (url: string) => Promise<unknown>
      readonly isRequired: () => boolean
    }
  | undefined

const load = typeof __load === 'undefined' ? null : __load

/** To be called before a thread is started: it has then less to compile. */
export function shareCode(): void {
  load?.shareCode()
}

/** To be called when a worker has worked for a while, or at its end: the next process has then less to compile, if its user keeps compiled code. */
export function keepCode(): void {
  load?.keepCode()
}

/** Imports a module by its URL, in a test runner without `import()` by the runner's `require`. */
export function importUrl<T>(url: string): Promise<T> {
  return (load === null ? import(url) : load.importUrl(url)) as Promise<T>
}

/**
 * Whether the loaders of this thread can read a module. They are asked for it as JSON: Node reads it and finds that it is none, so nothing of it runs. Asked for the module itself,
 * Node would remember one that could not be read, and no loader that is registered later could load it.
 */
export async function readByLoaders(url: string): Promise<boolean> {
  try {
    await (load === null ? import(url, { with: { type: 'json' } }) : load.importJson(url))
    return true
  } catch (error) {
    return (error as { code?: string }).code !== 'ERR_UNKNOWN_FILE_EXTENSION'
  }
}

/** Whether TypeScript is compiled by a test runner's `require`. */
export function isCompiled(): boolean {
  return load?.isRequired() === true
}
