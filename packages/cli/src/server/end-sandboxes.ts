import { SpaceClient } from '@space/sdk'

export interface EndSandboxesOptions {
  readonly apiUrl: string
  /** A token with the scope admin. */
  readonly token: string
  readonly signal?: AbortSignal | undefined
}

/** How many deletions are waited for at the same time. */
const concurrency = 8

/**
 * Deletes every sandbox of every account, through the API as an operator would, and waits until each is gone. Returns
 * the ids.
 */
export async function endSandboxes(options: EndSandboxesOptions): Promise<string[]> {
  const { apiUrl, signal } = options
  const operator = new SpaceClient({ apiUrl, token: options.token })
  const ended: string[] = []
  for await (const account of operator.accounts.all({ signal })) {
    const token = await operator.tokens.create(
      {
        account: account.id,
        name: 'space down',
        scopes: ['sandboxes:read', 'sandboxes:write'],
        expires_at: new Date(Date.now() + 3_600_000).toISOString(),
      },
      { signal },
    )
    const client = new SpaceClient({ apiUrl, token: token.value })
    ended.push(...(await endAll(client, signal)))
    await operator.tokens.revoke(token.id, { signal })
  }
  return ended
}

async function endAll(client: SpaceClient, signal: AbortSignal | undefined): Promise<string[]> {
  const ids: string[] = []
  for await (const sandbox of client.sandboxes.all({ limit: 1000 }, { signal }))
    if (sandbox.state !== 'deleted') ids.push(sandbox.id)
  const left = ids.values()
  const worker = async () => {
    for (const id of left) {
      const { operation } = await client.sandboxes.delete(id, { waitSeconds: 60, signal })
      await client.operations.wait(operation, { signal })
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return ids
}
