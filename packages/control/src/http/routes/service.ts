import { Health, Limits, limits, ref, Version } from '@space/contract'
import { sql } from 'kysely'
import { askNode } from '../../node-link/node.ts'
import type { Api, App } from '../api.ts'

const tags = ['service']

/** Health, limits, version: callable by everyone. */
export function serviceRoutes(app: App, api: Api): void {
  const config = { open: true }
  app.get(
    '/healthz',
    { config, schema: { tags, summary: 'Whether the process answers', response: { 200: ref(Health) } } },
    async () => ({ status: 'ok', reason: null }),
  )
  app.get(
    '/readyz',
    {
      config,
      schema: {
        tags,
        summary: 'Whether sandboxes can be created',
        response: { 200: ref(Health), 503: ref(Health) },
      },
    },
    async (_request, reply) => {
      const reason = await whyNotReady(api)
      if (reason === undefined) return { status: 'ok', reason: null }
      return reply.code(503).header('retry-after', '2').send({ status: 'unavailable', reason })
    },
  )
  app.get(
    '/v1/limits',
    { config, schema: { tags, summary: 'All limits', response: { 200: ref(Limits) } } },
    async () => limits,
  )
  app.get(
    '/v1/version',
    { config, schema: { tags, summary: 'Version and addresses', response: { 200: ref(Version) } } },
    async () => ({ version: '0.1.0', api: 'm1', data_plane_url: api.dataPlaneUrl }),
  )
}

async function whyNotReady(api: Api): Promise<string | undefined> {
  try {
    await sql`select 1`.execute(api.store.read)
    const facts = await askNode((options) => api.nodeApi.inspect({}, options))
    return facts.ready ? undefined : facts.notReadyReason || 'the node is not ready'
  } catch (err) {
    api.log.warn({ op: 'readyz', outcome: 'failed', err })
    return 'the store or the node does not answer'
  }
}
