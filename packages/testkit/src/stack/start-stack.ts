import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, createRouterTransport } from '@connectrpc/connect'
import { ControlService, NodeService } from '@space/contract/node-link'
import { type Control, createControl } from '@space/control'
import { createNode, type NodeSettings, type SpaceNode, templateStore } from '@space/node'
import { SpaceClient } from '@space/sdk'
import { pino } from 'pino'
import { FakeHost, fakeDriver } from '../fake-machine/index.ts'
import { fakeGuestImage, writeFakeTemplate } from './fake-template.ts'

export interface StackOptions {
  readonly settings?: Partial<NodeSettings>
}

/** A whole SPACE in this process on fake machines: true API, true data plane, true databases and files. */
export interface Stack {
  readonly home: string
  /** Where its machines live: to look at, kill and stall. */
  readonly host: FakeHost
  readonly apiUrl: string
  readonly dataPlaneUrl: string
  readonly token: string
  readonly client: SpaceClient
  readonly control: Control
  readonly node: SpaceNode
  /** Ends the servers, machines go on, and starts others on the same home and addresses. */
  restart(): Promise<Stack>
  /** Ends everything and removes the home. */
  close(): Promise<void>
}

interface Ground {
  readonly home: string
  readonly host: FakeHost
  readonly ports: { readonly api: number; readonly dataPlane: number }
  readonly options: StackOptions
}

/** Starts a SPACE in a new home with one template. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const home = await mkdtemp(join(tmpdir(), 'space-stack-'))
  await writeFakeTemplate(home)
  const ports = { api: await freePort(), dataPlane: await freePort() }
  return serve({ home, host: new FakeHost(), ports, options })
}

async function serve(ground: Ground): Promise<Stack> {
  const { home, host, ports, options } = ground
  const apiUrl = `http://127.0.0.1:${ports.api}`
  const dataPlaneUrl = `http://127.0.0.1:${ports.dataPlane}`
  const log = pino({ level: process.env['SPACE_LOG_LEVEL'] ?? 'silent' })
  const late = Promise.withResolvers<Control>()
  const node = createNode({
    home,
    driver: fakeDriver(host),
    guestImage: fakeGuestImage,
    templates: templateStore({ home }),
    controlApi: createClient(
      ControlService,
      createRouterTransport(({ service }) => {
        service(ControlService, {
          authorize: async (request, context) => (await late.promise).controlApi.authorize(request, context),
          ensureRunning: async (request, context) =>
            (await late.promise).controlApi.ensureRunning(request, context),
          report: async (request, context) => (await late.promise).controlApi.report(request, context),
          secret: async (request, context) => (await late.promise).controlApi.secret(request, context),
        })
      }),
    ),
    log,
    dataPlaneUrl,
    name: 'stack',
    settings: { readyMachines: 0, ...options.settings },
  })
  const control = await createControl({
    folder: join(home, 'control'),
    apiUrl,
    dataPlaneUrl,
    nodeApi: createClient(
      NodeService,
      createRouterTransport(({ service }) => {
        service(NodeService, node.nodeApi)
      }),
    ),
    log,
  })
  late.resolve(control)
  await node.start()
  await node.dataPlane.listen({ host: '127.0.0.1', port: ports.dataPlane })
  await control.start()
  await control.app.listen({ host: '127.0.0.1', port: ports.api })
  const { token } = await control.bootstrap()
  return {
    home,
    host,
    apiUrl,
    dataPlaneUrl,
    token,
    client: new SpaceClient({ apiUrl, token }),
    control,
    node,
    async restart() {
      await control.close()
      await node.release()
      return serve(ground)
    },
    async close() {
      await control.close()
      await node.shutdown()
      await host.close()
      await rm(home, { recursive: true, force: true })
    },
  }
}

/** A port nobody listens on; the next moment somebody may, which a test run on its own host accepts. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
