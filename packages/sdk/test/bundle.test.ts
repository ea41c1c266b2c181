import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

test('the client is at most 25 kB for a browser, minified and gzipped, and needs nothing of Node.js', async () => {
  const bundle = await build({
    entryPoints: [join(import.meta.dirname, '../src/index.ts')],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
  })
  const code = bundle.outputFiles[0]?.text ?? ''
  expect(code).toContain('last-event-id')
  expect(code).not.toMatch(/\bprocess\.|\bBuffer\b|from"node:/)
  expect(gzipSync(code).length).toBeLessThanOrEqual(25_000)
})
