import type { SpaceClient } from '@space/sdk'
import type { CommandContext } from '../context.ts'
import { CliFailure } from '../failure.ts'
import { renderDuration } from '../render/quantity.ts'
import { followCommand } from '../streams/running-command.ts'
import { note } from '../terminal/terminal.ts'

/** Prints what only the guest can know. */
const script = `printf 'kernel   '; uname -sr
printf 'boot id  '; cat /proc/sys/kernel/random/boot_id
printf 'python   '; python3 --version
`

/**
 * Makes a sandbox, runs a command in it and deletes it, showing the whole of it: the proof that what was set up works.
 * Says which environment ran it, and what emulation means where it is emulated.
 */
export async function runFirstSandbox(
  context: CommandContext,
  client: SpaceClient,
  signal: AbortSignal,
): Promise<void> {
  const { terminal } = context
  const startedMs = performance.now()
  // Not cut short by a signal: what the server began must be known here to be deleted.
  const { sandbox, operation } = await client.sandboxes.create({
    template: 'base',
    metadata: { 'made-by': 'space up' },
  })
  try {
    await client.operations.wait(operation, { signal })
    const createdMs = performance.now()
    await note(terminal, `\nA first sandbox, ${sandbox.id}:`)
    const running = await client.commands.run(sandbox.id, { argv: ['sh', '-c', script] }, { signal })
    const code = await followCommand(context, running, { signal })
    if (code !== 0)
      throw new CliFailure(`the first command ended with ${code}`, {
        code: 'first_command_failed',
        remedy: `run \`space doctor\`, and look into the log`,
      })
    const { environment } = await client.sandboxes.get(sandbox.id, { signal })
    const took = `created in ${renderDuration(createdMs - startedMs)}, ran in ${Math.round(performance.now() - createdMs)} ms`
    await note(
      terminal,
      `ran by ${environment?.id ?? 'an unknown environment'} (${environment?.machine ?? '?'}), ${took}`,
    )
    if (environment?.accelerator === 'tcg') await note(terminal, emulated)
  } finally {
    await client.sandboxes.delete(sandbox.id, { signal: AbortSignal.timeout(30_000) })
  }
}

const emulated =
  'This host has no /dev/kvm, so the processor is emulated: the same isolation and the same API, but programs in a\n' +
  'sandbox run several times slower than on the host. With KVM (`space doctor` says how) they run at full speed.'
