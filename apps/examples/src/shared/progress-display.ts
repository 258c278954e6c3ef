/** Progress as the reader can see it: a bar on a terminal, a line now and then elsewhere. */
import { ProgressBar } from 'postgrad/training'
import type { Progress } from 'postgrad/types'

export interface ProgressDisplay {
  update(progress: Progress): void
  /** Nothing is shown afterwards. */
  close(): void
}

export function progressDisplay(stream: NodeJS.WriteStream): ProgressDisplay {
  // Workers report in units of their own, whose rate says nothing.
  const bar = new ProgressBar({ stream, label: 'training', rate: false })
  return { update: (progress) => bar.show(progress), close: () => bar.close() }
}
