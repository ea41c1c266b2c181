import type { Reporter, SerializedError, TestModule, TestRunEndReason } from 'vitest/node'

/**
 * Prints the last line of a test run, `N passed, N failed, N skipped`. A module that fails outside its tests, an
 * unhandled error and an interrupted run each count as one failure, so that a broken run never looks green.
 */
export default class TallyReporter implements Reporter {
  onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules) {
      let failedHere = 0
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        counts[state] += 1
        if (state === 'failed') failedHere += 1
      }
      if (module.state() === 'failed' && failedHere === 0) counts.failed += 1
    }
    counts.failed += unhandled.length + (reason === 'interrupted' ? 1 : 0)
    const skipped = counts.skipped + counts.pending
    process.once('exit', () => {
      console.log(
        `\n${counts.passed} passed, ${counts.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
      )
    })
  }
}
