import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findGo, goEnvironment } from '../packages/node/src/images/toolchain.ts'
import { artifactHome } from './server.ts'

test("the agent's own tests pass, with the Go that built it", async () => {
  const cache = join(artifactHome, 'node', 'cache')
  const go = await findGo(cache, '1.26')
  const done = spawnSync(go?.program ?? 'go', ['test', './...'], {
    cwd: join(import.meta.dirname, '..', 'guest'),
    env: { ...process.env, ...goEnvironment(cache) },
    encoding: 'utf8',
  })
  expect(done.stdout).toMatch(/^ok\s+space\/guest\/internal\/link/m)
  expect(done.status, done.stdout + done.stderr).toBe(0)
})
