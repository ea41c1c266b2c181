/**
 * Steps that run side by side, shown on stderr: on a terminal one line that is rewritten, with a line that stays for
 * each step that ended; elsewhere a line when a step begins, at most one every few seconds while it runs, and one when
 * it ends.
 */
import type { Terminal } from '../terminal/terminal.ts'
import { renderDuration } from './quantity.ts'
import { cut, visible } from './text.ts'

export interface ProgressView extends Disposable {
  begin(id: string, title: string): void
  update(id: string, message: string, fraction?: number): void
  end(id: string, outcome: 'done' | 'failed'): void
}

interface Running {
  readonly title: string
  readonly startedMs: number
  message: string
  saidMs: number
}

/** Least time between two lines about one running step where lines stay, in milliseconds. */
const quietMs = 5_000
const redrawMs = 200
/** How long something may take without a word, in milliseconds. */
const patienceMs = 1_000

export function progressView(terminal: Terminal, now: () => number = () => performance.now()): ProgressView {
  const { stderr } = terminal
  const live = stderr.isTTY === true
  const running = new Map<string, Running>()
  const line = (text: string) => stderr.write(`${live ? '\r\x1b[K' : ''}${text}\n`)
  const draw = () => {
    const parts = [...running.values()].map((step) => `${step.message || step.title} ${elapsed(step)}`)
    if (live)
      stderr.write(`\r\x1b[K${cut(parts.map((part) => `· ${part}`).join('  '), (stderr.columns ?? 80) - 1)}`)
  }
  const elapsed = (step: Running) => renderDuration(now() - step.startedMs)
  const timer = live ? setInterval(draw, redrawMs) : undefined
  return {
    begin(id, title) {
      running.set(id, { title, startedMs: now(), message: '', saidMs: now() })
      if (live) draw()
      else line(`· ${title}`)
    },
    update(id, message, fraction) {
      const step = running.get(id)
      if (step === undefined) return
      step.message = `${visible(message)}${fraction === undefined ? '' : ` ${Math.floor(fraction * 100)}%`}`
      if (live || now() - step.saidMs < quietMs) return
      step.saidMs = now()
      line(`    ${step.message}`)
    },
    end(id, outcome) {
      const step = running.get(id)
      if (step === undefined) return
      running.delete(id)
      line(`${outcome === 'done' ? '✓' : '✗'} ${step.title} (${elapsed(step)})`)
      draw()
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      if (live && running.size > 0) stderr.write('\r\x1b[K')
      running.clear()
    },
  }
}

/** Shows a step only when it takes long enough to be wondered about. */
export async function showLong<T>(terminal: Terminal, title: string, work: Promise<T>): Promise<T> {
  using view = progressView(terminal)
  const timer = setTimeout(() => view.begin(title, title), patienceMs)
  try {
    const result = await work
    view.end(title, 'done')
    return result
  } finally {
    clearTimeout(timer)
  }
}
