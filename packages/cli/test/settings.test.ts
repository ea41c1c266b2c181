import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { variables } from '@space/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig, writeConfig } from '../src/settings/config-file.ts'
import { readSettings } from '../src/settings/settings.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'space-settings-'))
})
afterAll(() => rm(folder, { recursive: true }))

test('without variables every setting has the default of the table', () => {
  const settings = readSettings({})
  expect(settings.home).toBe('/var/lib/space')
  expect(settings.apiUrl.href).toBe('http://127.0.0.1:7070/')
  expect(settings.configPath).toBe(join(homedir(), '.config/space/config.json'))
  expect(settings).toMatchObject({
    readyMachines: 2,
    journalBytes: 268_435_456,
    logLevel: 'info',
    token: undefined,
  })
  expect(readSettings({ SPACE_HOME: '', SPACE_API_URL: '' })).toEqual(settings)
})

test('a wrong value is refused with the name of its variable', () => {
  const wrong: Record<string, string> = {
    SPACE_HOME: 'relative/path',
    SPACE_API_URL: 'ftp://x',
    SPACE_DATA_PLANE_URL: 'not a url',
    SPACE_MACHINE: 'vmware',
    SPACE_KERNEL: 'linux.deb',
    SPACE_READY_MACHINES: '-1',
    SPACE_JOURNAL_BYTES: '1e9',
    SPACE_LOG_LEVEL: 'loud',
  }
  for (const [name, value] of Object.entries(wrong)) {
    expect(variables.some((variable) => variable.name === name)).toBe(true)
    expect(() => readSettings({ [name]: value }), name).toThrow(name)
  }
})

test('the configuration file comes back as it was written, readable by its owner alone', async () => {
  const path = join(folder, 'made', 'config.json')
  const config = { apiUrl: 'http://127.0.0.1:7070', dataPlaneUrl: 'http://127.0.0.1:7071', token: 'spt_x' }
  expect(await readConfig(path)).toBeUndefined()
  await writeConfig(path, config)
  expect(await readConfig(path)).toEqual(config)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect((await stat(join(folder, 'made'))).mode & 0o777).toBe(0o700)
})

test('rewriting a file others could read closes it, and leaves no draft', async () => {
  const path = join(folder, 'open.json')
  await writeFile(path, 'old')
  await chmod(path, 0o644)
  await writeConfig(path, { apiUrl: 'http://x.test', dataPlaneUrl: undefined, token: 't' })
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect((await readdir(folder)).filter((name) => name.startsWith('open'))).toEqual(['open.json'])
  expect(await readFile(path, 'utf8')).toContain('"api_url": "http://x.test"')
})

test('a file that is no configuration is named, with what to do', async () => {
  const path = join(folder, 'broken.json')
  for (const text of ['', '{', '[]', '{"api_url": 1, "token": "t"}', '{"api_url": "http://x.test"}']) {
    await writeFile(path, text)
    await expect(readConfig(path), text).rejects.toThrow(path)
  }
})
