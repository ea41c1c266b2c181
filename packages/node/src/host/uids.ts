/**
 * Uids for VMMs: one number of a range that no distribution, directory service or container runtime hands out by
 * default (it lies above the ranges of subuid, sssd and systemd-nspawn).
 */
export interface UidRange {
  readonly first: number
  readonly count: number
}

export const defaultUidRange: UidRange = { first: 2_100_000_000, count: 4096 }

/** The uid, also used as gid, that belongs to a slot's number. */
export function uidOf(range: UidRange, slotNumber: number): number {
  if (!Number.isInteger(slotNumber) || slotNumber < 0 || slotNumber >= range.count)
    throw new RangeError(`slot ${slotNumber} is outside the uid range`)
  return range.first + slotNumber
}
