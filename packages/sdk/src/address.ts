/** Joins a base address, path segments and query values, each encoded; undefined query values are left out. */
export function address(
  base: string,
  segments: readonly string[],
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const path = segments.map(encodeURIComponent).join('/')
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${encodeURIComponent(name)}=${encodeURIComponent(value)}`],
  )
  return `${base.replace(/\/+$/, '')}/${path}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`
}
