/** A bench that could not measure: the message says what was asked for and what came instead. */
export class BenchError extends Error {
  override readonly name = 'BenchError'
}
