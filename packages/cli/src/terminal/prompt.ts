import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Terminal } from './terminal.ts'

/** Asks once on stderr; anything but an explicit no is a yes. */
export async function confirm(terminal: Terminal, question: string, signal?: AbortSignal): Promise<boolean> {
  const lines = createInterface({ input: terminal.stdin, output: terminal.stderr })
  try {
    const answer = await lines.question(`${question} [Y/n] `, signal === undefined ? {} : { signal })
    return !/^\s*n/i.test(answer)
  } finally {
    lines.close()
  }
}

/** Reads a secret: on a terminal one line that is not shown, else all of stdin. */
export async function readSecret(terminal: Terminal, question: string): Promise<string> {
  if (!terminal.stdin.isTTY) return (await text(terminal.stdin)).trim()
  terminal.stderr.write(question)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: terminal.stdin, output: silent, terminal: true })
  try {
    return (await lines.question('')).trim()
  } finally {
    lines.close()
    terminal.stderr.write('\n')
  }
}
