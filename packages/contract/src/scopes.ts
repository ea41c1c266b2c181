/** What a token may be allowed to do; each endpoint names the one scope it asks for. */
export const scopes = [
  'sandboxes:read',
  'sandboxes:write',
  'commands:run',
  'files:read',
  'files:write',
  'templates:read',
  'templates:write',
  'secrets:write',
  'admin',
] as const

export type Scope = (typeof scopes)[number]

/** Whether a text names a scope. */
export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text)
}
