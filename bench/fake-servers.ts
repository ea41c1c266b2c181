/**
 * Control and node as `space up` puts them together, over the fake machine: what remains is what SPACE itself costs.
 * Prints its address and a token as one JSON line, and ends when its stdin does.
 */
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Template } from '@space/node'
import { FakeHost, fakeDriver } from '@space/testkit'
import { compose } from '../packages/cli/src/server/composition.ts'
import { openLog } from '../packages/cli/src/server/log.ts'
import { readSettings } from '../packages/cli/src/settings/settings.ts'

const source = process.env['SPACE_HOME'] || '/var/lib/space'
// The databases lie on the disk the real ones lie on, not in a /tmp that may be memory.
const home = await mkdtemp(join(dirname(source), 'space-bench-fake-'))
const hex = 'b'.repeat(64)
const folder = join(home, 'node', 'templates', hex)
const template: Template = {
  name: 'base',
  digest: `sha256:${hex}`,
  tags: ['base:latest'],
  folder,
  rootImage: join(folder, 'root.ext4'),
  recipeHash: 'bench',
  sizeBytes: 0,
  diskMib: 8192,
  defaultShape: { vcpus: 1, memoryMib: 1024 },
  defaults: { user: 'user', cwd: '/home/user', env: {} },
  createdAtMs: 0,
}
await mkdir(folder, { recursive: true })
await writeFile(template.rootImage, '')
const host = new FakeHost()
const serverLog = openLog(home, 'fatal')
const servers = await compose(
  readSettings({
    SPACE_HOME: home,
    SPACE_API_URL: 'http://127.0.0.1:0',
    SPACE_DATA_PLANE_URL: 'http://127.0.0.1:0',
    SPACE_READY_MACHINES: '0',
  }),
  {
    driver: fakeDriver(host),
    guestImage: { vmlinux: '', initramfs: '', modulesDrive: '', kernelRelease: 'fake', digest: 'fake' },
    templates: { list: async () => [template], resolve: async () => template, remove: async () => undefined },
  },
  serverLog.log,
)
try {
  const { token } = await servers.bootstrap()
  process.stdout.write(`${JSON.stringify({ url: servers.apiUrl, token })}\n`)
  await once(process.stdin.resume(), 'end')
} finally {
  await servers.shutdown()
  await host.close()
  serverLog[Symbol.dispose]()
  await rm(home, { recursive: true, force: true })
}
process.exit(0)
