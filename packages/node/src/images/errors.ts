/** What can go wrong while a host is being set up; each has a remedy that fits on one line. */
export type SetUpErrorCode =
  | 'not_root'
  | 'no_apt'
  | 'program_missing'
  | 'program_failed'
  | 'download_corrupt'
  | 'kernel_unusable'
  | 'image_missing'
  | 'template_missing'
  | 'recipe_invalid'
  | 'host_unsupported'

/** A set-up step that cannot go on. `remedy` is a command or a sentence that says what to do next. */
export class SetUpError extends Error {
  readonly code: SetUpErrorCode
  readonly remedy: string

  constructor(code: SetUpErrorCode, message: string, remedy: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SetUpError'
    this.code = code
    this.remedy = remedy
  }
}
