/** The name of a file next to another one, which it replaces when it is whole. */
import { threadId } from 'node:worker_threads'

let made = 0

/** No other thread or call of this machine gets the same name. */
export const temporaryOf = (path: string): string => `${path}.${process.pid}-${threadId}-${++made}.tmp`
