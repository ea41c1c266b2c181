import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hostChecks } from '../src/doctor/index.ts'
import { portChecks } from '../src/doctor/ports.ts'
import { processorChecks } from '../src/doctor/processor.ts'
import { programCheck } from '../src/doctor/programs.ts'

test('every line has a detail, and every line that is not ok a remedy; the host is left as it was', async () => {
  const home = await mkdtemp(join(tmpdir(), 'space-doctor-'))
  const settings = { apiUrl: 'http://127.0.0.1:7070', dataPlaneUrl: 'http://127.0.0.1:7071' }
  const checks = await hostChecks({ home }, settings)
  expect(await readdir(home)).toEqual([])
  await rm(home, { recursive: true })
  const ids = checks.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of [
    'root',
    'node',
    'go',
    'cpu',
    'environment',
    'qemu-system-x86_64',
    'nft',
    'tun',
    'namespaces',
    'nftables',
    'cgroups',
    'disk',
    'memory',
    'api-port',
    'data-plane-port',
  ])
    expect(ids).toContain(id)
  for (const check of checks) {
    expect(check.detail).not.toBe('')
    expect(check.detail).not.toContain('\n')
    if (check.status !== 'ok') expect(check.remedy ?? '').not.toBe('')
  }
})

test('a program that is missing comes with the package, the exact command and a fix', async () => {
  const check = await programCheck({
    program: 'space-no-such-program',
    package: 'some-package',
    use: 'does nothing',
  })
  expect(check.status).toBe('fail')
  expect(check.remedy).toMatch(/apt-get install --yes --no-install-recommends some-package$/)
  expect(check.fix).toBeTypeOf('function')
})

test('a taken port names who listens there; a free one and one of our own are fine', async () => {
  const stranger = createServer((socket) => socket.resume()).listen(0, '127.0.0.1')
  const ours = createHttpServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
  await Promise.all([once(stranger, 'listening'), once(ours, 'listening')])
  const url = (server: { address(): AddressInfo | string | null }) =>
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    const [taken, serving] = await portChecks({
      SPACE_API_URL: url(stranger),
      SPACE_DATA_PLANE_URL: url(ours),
    })
    expect(taken).toMatchObject({ status: 'fail', detail: expect.stringContaining(`pid ${process.pid}`) })
    expect(taken?.remedy).toContain('SPACE_API_URL')
    expect(serving).toMatchObject({ status: 'ok' })
    const free = url(stranger)
    await new Promise((resolve) => stranger.close(resolve))
    expect(await portChecks({ SPACE_API_URL: free })).toMatchObject([{ status: 'ok' }])
  } finally {
    stranger.close()
    ours.close()
    ours.closeAllConnections()
  }
})

test('an address that is no URL is one line, not a crash', async () => {
  expect(await portChecks({ SPACE_API_URL: 'nonsense' })).toMatchObject([{ status: 'fail' }])
})

test('the environment is named with the reason, and a VMM that is not there is refused', async () => {
  const [, found] = await processorChecks('')
  expect(found?.detail).toMatch(/^qemu-(kvm|tcg)\b.*:/)
  const [, forced] = await processorChecks('bochs')
  expect(forced).toMatchObject({ status: 'fail', remedy: 'unset SPACE_MACHINE' })
})
