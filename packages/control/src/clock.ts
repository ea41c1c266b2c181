/** The one source of time in control; a virtual one can stand in for it. */
export interface Clock {
  /** Unix milliseconds. */
  nowMs(): number
}

export const systemClock: Clock = { nowMs: () => Date.now() }

/** RFC 3339, UTC, milliseconds: how every time leaves the API. */
export function toTime(unixMs: number): string {
  return new Date(unixMs).toISOString()
}

export function toNullableTime(unixMs: number | null): string | null {
  return unixMs === null ? null : toTime(unixMs)
}
