const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** A number of bytes for a person: `0 B`, `1.5 MiB`. */
export function renderBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < byteUnits.length - 1) {
    value /= 1024
    unit++
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1
  return `${value.toFixed(digits)} ${byteUnits[unit] ?? ''}`
}

/** A span of time for a person, in its largest one or two units: `3s`, `4m 10s`, `2h 5m`, `3d 4h`. */
export function renderDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return pair(minutes, 'm', seconds % 60, 's')
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return pair(hours, 'h', minutes % 60, 'm')
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

/** How long ago a time of the API is; `-` for none. */
export function renderAge(time: string | null | undefined, nowMs: number): string {
  if (time === null || time === undefined) return '-'
  return renderDuration(nowMs - Date.parse(time))
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit} ${small}${smallUnit}`
}
