import { type Process, type SpaceClient, SpaceError } from '@space/sdk'
import { CliFailure, exitCodes } from '../failure.ts'

/** How many sandboxes are asked at the same time, well below what the server allows a client. */
const concurrency = 8

/**
 * Finds a process by its id alone, by asking each sandbox of the account, newest first. Throws `not_found` when none
 * has it.
 */
export async function findProcess(client: SpaceClient, processId: string): Promise<Process> {
  let batch: Promise<Process | undefined>[] = []
  for await (const sandbox of client.sandboxes.all({ limit: 1000 })) {
    if (sandbox.state === 'deleted') continue
    batch.push(processOf(client, sandbox.id, processId))
    if (batch.length < concurrency) continue
    const found = (await Promise.all(batch)).find((process) => process !== undefined)
    if (found !== undefined) return found
    batch = []
  }
  const found = (await Promise.all(batch)).find((process) => process !== undefined)
  if (found !== undefined) return found
  throw new CliFailure(`there is no process ${processId} in any sandbox of this account`, {
    code: 'not_found',
    exitCode: exitCodes.notFound,
    remedy: '`space ps` lists the sandboxes, `space inspect SANDBOX` the processes in one',
  })
}

async function processOf(
  client: SpaceClient,
  sandboxId: string,
  processId: string,
): Promise<Process | undefined> {
  try {
    return await client.processes.get(sandboxId, processId)
  } catch (error) {
    if (error instanceof SpaceError && error.status === 404) return undefined
    throw error
  }
}
