import { visible } from './text.ts'

/** An object of the API as indented `name: value` lines; what is null or empty is left out. */
export function renderRecord(record: Readonly<Record<string, unknown>>, indent = ''): string {
  return Object.entries(record)
    .flatMap(([name, value]) => renderField(name, value, indent))
    .join('\n')
}

function renderField(name: string, value: unknown, indent: string): string[] {
  if (value === null || value === undefined) return []
  const label = `${indent}${visible(name)}:`
  if (Array.isArray(value)) return value.length === 0 ? [] : [`${label} ${value.map(renderScalar).join(' ')}`]
  if (typeof value === 'object') {
    const inner = renderRecord(value as Record<string, unknown>, `${indent}  `)
    return inner === '' ? [] : [label, inner]
  }
  return [`${label} ${renderScalar(value)}`]
}

function renderScalar(value: unknown): string {
  return typeof value === 'string' ? visible(value) : JSON.stringify(value)
}
