/** What `load.cts` does for the library where it is one file. Where it is modules, as tsc made them, there is none of it. */
declare const __load:
  | { readonly shareCode: () => void; readonly importUrl: (url: string) => Promise<unknown>; readonly isRequired: () => boolean }
  | undefined

const load = typeof __load === 'undefined' ? null : __load

/** To be called before a thread is started: it has then less to compile. */
export function shareCode(): void {
  load?.shareCode()
}

/** Imports a module by its URL, in a test runner without `import()` by the runner's `require`. */
export function importUrl<T>(url: string): Promise<T> {
  return (load === null ? import(url) : load.importUrl(url)) as Promise<T>
}

/** Whether TypeScript is compiled by a test runner's `require`. */
export function isCompiled(): boolean {
  return load?.isRequired() === true
}
