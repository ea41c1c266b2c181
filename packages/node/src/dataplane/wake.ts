/** Runs something that needs a running sandbox; one that is made or sleeps is waited for, by asking control. */
import { PublicError } from '@space/contract'
import { fromConnectError } from '@space/contract/node-link'
import type { DataPlaneOptions } from './data-plane.ts'

/** Runs `work`; when the sandbox does not run, has control make it run and tries once more. */
export async function wakeAndRun<T>(
  { controlApi, sandboxes }: DataPlaneOptions,
  sandboxId: string,
  work: () => Promise<T>,
): Promise<T> {
  sandboxes.touch(sandboxId)
  try {
    return await work()
  } catch (error) {
    if (!isNotRunning(error)) throw error
  }
  await controlApi.ensureRunning({ sandboxId }).catch((error: unknown) => {
    throw fromConnectError(error)
  })
  return await work()
}

function isNotRunning(error: unknown): boolean {
  return error instanceof PublicError && error.details['reason'] === 'sandbox_not_running'
}
