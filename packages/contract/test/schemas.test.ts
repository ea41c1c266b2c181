import { components } from '@space/contract'
import { expect, test } from 'vitest'

const named = components.map((schema) => (schema as { $id?: string }).$id ?? '')

test('every schema has a name of its own', () => {
  expect(new Set(named).size).toBe(named.length)
  expect(named).not.toContain('')
})

test('every reference of a schema leads to another schema', () => {
  const text = JSON.stringify(components)
  const references = [...text.matchAll(/"\$ref":"([A-Za-z]+)#"/g)].map((match) => match[1])
  expect(references.length).toBeGreaterThan(20)
  expect(references.filter((name) => !named.includes(name ?? ''))).toEqual([])
})

test('a request body takes no field it does not name', () => {
  const open = components.filter((schema) => {
    const { $id, additionalProperties } = schema as { $id?: string; additionalProperties?: boolean }
    return $id?.endsWith('Request') && additionalProperties !== false
  })
  expect(open).toEqual([])
})
