/** Why a journal could not be written or read. */
export type JournalErrorCode =
  | 'journal_gap'
  | 'journal_corrupt'
  | 'journal_ended'
  | 'journal_closed'
  | 'journal_short_write'

/** A failure of the journal itself; the message names places on this host and goes to the log only. */
export class JournalError extends Error {
  readonly code: JournalErrorCode

  constructor(code: JournalErrorCode, message: string) {
    super(message)
    this.name = 'JournalError'
    this.code = code
  }
}
