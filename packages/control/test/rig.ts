/** A control plane on a port of its own with a scripted node, as clients see it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, createRouterTransport } from '@connectrpc/connect'
import { ControlService } from '@space/contract/node-link'
import { type ControlOptions, createControl } from '@space/control'
import { FakeNode } from './fake-node.ts'

export interface Answer<T = Record<string, unknown>> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}

export type Rig = Awaited<ReturnType<typeof startRig>>

/** Starts control over a folder, a new one by default; `close` ends it and removes a folder of its own. */
export async function startRig(
  options: Partial<ControlOptions> & { readonly node?: FakeNode; readonly start?: boolean } = {},
) {
  const ownFolder = options.folder === undefined
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'space-control-'))
  const node = options.node ?? new FakeNode()
  const control = await createControl({
    apiUrl: 'http://127.0.0.1:7070',
    dataPlaneUrl: 'http://127.0.0.1:7071',
    nodeApi: node.client,
    ...options,
    folder,
  })
  const { account, token } = await control.bootstrap()
  const url = await control.app.listen({ host: '127.0.0.1', port: 0 })
  if (options.start !== false) await control.start()
  const controlApi = createClient(
    ControlService,
    createRouterTransport((router) => {
      router.service(ControlService, control.controlApi)
    }),
  )

  async function call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? ({} as T) : JSON.parse(text),
    }
  }

  return {
    folder,
    node,
    control,
    controlApi,
    account,
    token,
    url,
    call,
    /** A sandbox that runs. */
    async createRunning(body: Record<string, unknown> = {}): Promise<string> {
      const made = await call<{ sandbox: { id: string; state: string } }>(
        'POST',
        '/v1/sandboxes',
        { template: 'base', ...body },
        { prefer: 'wait=10' },
      )
      if (made.body.sandbox.state !== 'running')
        throw new TypeError(`not running: ${JSON.stringify(made.body)}`)
      return made.body.sandbox.id
    },
    async close() {
      await control.close()
      if (ownFolder) rmSync(folder, { recursive: true, force: true })
    },
  }
}
