/** Progress as the reader can see it: a bar on a terminal, a line now and then elsewhere. */
import cliProgress from 'cli-progress'
import type { Progress } from 'postgrad/jobs'

/** Without a terminal there is a line now and then: the second one after so many milliseconds, later ones twice as long after the last, up to a bound. */
const FIRST_PAUSE_MS = 500
const PAUSE_MS_MAX = 5000
/** With the text next to it, within 80 columns. */
const BAR_COLUMNS = 16

export interface ProgressDisplay {
  update(progress: Progress): void
  /** Gives the terminal back; nothing is shown afterwards. */
  close(): void
}

export function progressDisplay(stream: NodeJS.WriteStream): ProgressDisplay {
  return stream.isTTY ? bar(stream) : lines(stream)
}

function bar(stream: NodeJS.WriteStream): ProgressDisplay {
  const shown = new cliProgress.SingleBar(
    {
      format: 'training [{bar}] {percentage}% {text}',
      stream,
      hideCursor: true,
      barsize: BAR_COLUMNS,
      // Ctrl-C is handled by the main program.
      gracefulExit: false,
    },
    cliProgress.Presets.shades_classic,
  )
  let state: 'waiting' | 'shown' | 'closed' = 'waiting'
  return {
    update({ done, total = 1, text = '' }) {
      if (state === 'closed') return
      if (state === 'waiting') shown.start(total, 0, { text })
      state = 'shown'
      shown.update(done, { text })
    },
    close() {
      if (state === 'shown') shown.stop()
      state = 'closed'
    },
  }
}

function lines(stream: NodeJS.WriteStream): ProgressDisplay {
  let nextMs = Number.NEGATIVE_INFINITY
  let pauseMs = FIRST_PAUSE_MS
  let closed = false
  return {
    update({ done, total = 1, text = '' }) {
      const nowMs = performance.now()
      if (closed || nowMs < nextMs) return
      nextMs = nowMs + pauseMs
      pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)
      stream.write(`training ${Math.floor((100 * done) / total)}%: ${text}\n`)
    },
    close() {
      closed = true
    },
  }
}
