/** A process or thread that uses the file store of `file-store.real.test.ts` as the mode says. */
import { FileLock } from './file-lock.js'
import { FileStore } from './file-store.js'

const [mode, path, name] = process.argv.slice(2) as [string, string, string]
const say = (text: string): Promise<void> => new Promise((resolve) => process.stdout.write(`${text}\n`, () => resolve()))

if (mode === 'add') {
  // Prints each sum that `add` returned, one to a line, until it is killed.
  const store = new FileStore(path)
  for (;;) {
    const [sum] = await Promise.all([store.add('n', 1), store.set(`large ${name}`, 'x'.repeat(100_000))])
    await say(`${sum}`)
  }
} else if (mode === 'hold') {
  // Dies with the lock.
  new FileLock(`${path}.lock`).tryAcquire()
  await say('locked')
  setInterval(() => {}, 1000)
} else if (mode === 'wait') {
  const store = new FileStore(path)
  await say('waiting')
  await say(await store.getText('answer'))
  await store.set('thanks', name)
  store.close()
}
