/** One thing looked at on this host. A line to a person, a member of an array to a program. */
export interface Check {
  readonly id: string
  readonly title: string
  readonly status: 'ok' | 'warn' | 'fail'
  /** What was found, in one line. */
  readonly detail: string
  /** The command, or where there is none the sentence, that makes it right. Always there unless the status is ok. */
  readonly remedy?: string
  /** Carries the remedy out, where that is possible without asking. */
  readonly fix?: () => Promise<void>
}

/** What `hostChecks` needs of the settings; all from the table of variables. */
export interface DoctorSettings {
  readonly apiUrl: string
  readonly dataPlaneUrl: string
  /** The value of SPACE_MACHINE; empty for the best this host offers. */
  readonly machine?: string
}

/** Everything is as it should be. */
export function ok(id: string, title: string, detail: string): Check {
  return { id, title, status: 'ok', detail }
}

/** Something is missing; `warn` when SPACE runs all the same. */
export function bad(
  status: 'warn' | 'fail',
  id: string,
  title: string,
  detail: string,
  remedy: string,
  fix?: () => Promise<void>,
): Check {
  return { id, title, status, detail, remedy, ...(fix && { fix }) }
}
