/** Something the floor needs is missing or answered wrongly: the message says what and, where there is one, the remedy. */
export class FloorError extends Error {
  override readonly name = 'FloorError'
}
