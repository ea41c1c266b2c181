import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Code, ConnectError } from '@connectrpc/connect'
import { NodeService } from '@space/contract/node-link'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { askDown, serveAdminSocket } from '../src/server/admin-socket.ts'
import { requireFreePorts } from '../src/server/listeners.ts'
import { memoryClient } from '../src/server/memory-link.ts'
import { purge } from '../src/server/purge.ts'
import { writeConfig } from '../src/settings/config-file.ts'
import { readSettings } from '../src/settings/settings.ts'

let home = ''
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'space-server-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

test('a taken port is one sentence that names the port and the variable', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const settings = readSettings({
    SPACE_API_URL: 'http://127.0.0.1:0',
    SPACE_DATA_PLANE_URL: `http://127.0.0.1:${port}`,
  })
  await expect(requireFreePorts(settings)).rejects.toMatchObject({
    code: 'port_taken',
    message: expect.stringContaining(`port ${port}`),
    remedy: expect.stringContaining('SPACE_DATA_PLANE_URL'),
  })
  await new Promise((resolve) => other.close(resolve))
  await requireFreePorts(settings)
})

test('an address of another machine is refused with its variable', async () => {
  const settings = readSettings({ SPACE_API_URL: 'http://192.0.2.1:7070' })
  await expect(requireFreePorts(settings)).rejects.toMatchObject({
    remedy: expect.stringContaining('SPACE_API_URL'),
  })
})

test('down reaches the serving process by a socket of root alone, and waits for its sandboxes', async () => {
  await mkdir(join(home, 'run'))
  let asked = 0
  await using _socket = await serveAdminSocket(home, async () => {
    asked++
    await new Promise((resolve) => setTimeout(resolve, 50))
    return { sandboxes: ['sbx1'], complete: true }
  })
  expect((await stat(join(home, 'run', 'admin.sock'))).mode & 0o777).toBe(0o600)
  const { signal } = new AbortController()
  const answers = await Promise.all([askDown(home, signal), askDown(home, signal)])
  expect(answers.map(({ sandboxes }) => sandboxes)).toEqual([['sbx1'], ['sbx1']])
  expect(asked).toBe(1)
})

test('a server that cannot be asked is said to be so', async () => {
  await expect(askDown(home, new AbortController().signal)).rejects.toMatchObject({
    remedy: expect.stringContaining('pid'),
  })
})

test('a service in this process is called by its contract, and found at the time of the call', async () => {
  let ready = false
  const client = memoryClient(NodeService, () => {
    if (!ready) throw new ConnectError('not yet', Code.Unavailable)
    return { inspect: () => ({ name: 'here', ready: true }) } as never
  })
  await expect(client.inspect({})).rejects.toMatchObject({ code: Code.Unavailable })
  ready = true
  expect(await client.inspect({})).toMatchObject({ name: 'here', ready: true, notReadyReason: '' })
})

test('a purge removes what SPACE made and nothing beside it', async () => {
  const configPath = join(home, 'user', 'config.json')
  const settings = readSettings({ SPACE_HOME: join(home, 'space'), SPACE_CONFIG: configPath })
  for (const part of ['control', 'node/images', 'run'])
    await mkdir(join(settings.home, part), { recursive: true })
  await writeFile(join(settings.home, 'mine.txt'), 'kept')
  await writeConfig(configPath, { apiUrl: settings.apiUrl.href, dataPlaneUrl: undefined, token: 't' })
  const purged = await purge(settings, [])
  expect(await readdir(settings.home)).toEqual(['mine.txt'])
  expect(purged.removed).toContain(configPath)
  expect(purged.left.join('\n')).toMatch(/mine|did not make/)
  expect(await readdir(home)).toEqual(['space'])
  await rm(join(settings.home, 'mine.txt'))
  expect((await purge(settings, [])).removed).toContain(settings.home)
  expect(await readdir(home)).toEqual([])
})

test('a purge leaves a configuration that names another SPACE', async () => {
  const configPath = join(home, 'config.json')
  const settings = readSettings({ SPACE_HOME: join(home, 'space'), SPACE_CONFIG: configPath })
  await writeConfig(configPath, { apiUrl: 'https://elsewhere.test/', dataPlaneUrl: undefined, token: 't' })
  await purge(settings, [])
  expect(await readdir(home)).toEqual(['config.json'])
})
