/** How much a journal keeps and holds back; each number is a bound somebody can rely on. */
export interface JournalLimits {
  /** A segment this long is closed and the next one begun. */
  readonly segmentBytes: number
  /** The oldest segments go while what remains is at least this long. */
  readonly keepBytes: number
  /** What may wait in memory to be written; an append above it asks its caller to wait. */
  readonly maxPendingBytes: number
  /** Pause after a failed write (a full disk) before the same bytes are tried again. */
  readonly retryMs: number
}

export const journalLimits: JournalLimits = {
  segmentBytes: 8 * 1024 * 1024,
  keepBytes: 256 * 1024 * 1024,
  maxPendingBytes: 1024 * 1024,
  retryMs: 1000,
}
