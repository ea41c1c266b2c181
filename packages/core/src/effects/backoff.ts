/** How long to wait before asking again after `attempts` failures: doubling from 100 ms, never above 10 s. */
export function backoffMs(attempts: number): number {
  return Math.min(10_000, 100 * 2 ** Math.min(attempts, 10))
}
