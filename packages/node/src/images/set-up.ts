import { join } from 'node:path'
import { agentIsBuilt, type BuiltAgent, buildAgent } from './agent.ts'
import { hostSources } from './apt.ts'
import { guestImageIsCurrent, makeGuestImage } from './guest-image.ts'
import { loadHostFacts, measureHost } from './host-facts.ts'
import { missingPackages } from './host-programs.ts'
import { cachedKernel, prepareKernel } from './kernel.ts'
import { imagePaths, projectRoot, type SpaceHome } from './paths.ts'
import type { SetUpStep } from './set-up-step.ts'
import { installSystemPackages } from './system-packages.ts'
import { templateStore } from './template-store.ts'
import { findGo, minimumGo, prepareGo } from './toolchain.ts'

export interface SetUpOptions {
  /** The value of SPACE_KERNEL: a kernel package to use instead of Debian's. */
  readonly kernelPackage?: string
  /** Makes the base snapshot of `base` once all else is there; left out where nothing can be booted. */
  readonly baseSnapshot?: Pick<SetUpStep, 'isDone' | 'run'>
}

const mib = 1024 * 1024

/**
 * Everything between a fresh host and the first sandbox, in an order that can be run one by one. `runSetUp` runs them
 * several at a time.
 */
export function setUpSteps(home: SpaceHome, options: SetUpOptions = {}): SetUpStep[] {
  const paths = imagePaths(home)
  const { cache } = paths
  const guest = join(projectRoot, 'guest')
  const override = options.kernelPackage === '' ? undefined : options.kernelPackage
  const kernelChoice = override === undefined ? {} : { override }
  const templates = templateStore(home)
  const agentIsThere = async () => await agentIsBuilt(cache, guest)
  const builtAgent = async (signal: AbortSignal): Promise<BuiltAgent> =>
    await buildAgent(
      cache,
      guest,
      async () => await prepareGo(cache, await hostSources(signal), await minimumGo(guest), { signal }),
      signal,
    )

  const steps: SetUpStep[] = [
    {
      id: 'system-packages',
      title: 'Install the system packages SPACE runs (QEMU, nftables, mmdebstrap, …)',
      estimate: { fetchBytes: 60 * mib, diskBytes: 200 * mib, seconds: 45 },
      where: 'the system, by apt',
      undo: 'apt-get remove the packages named above; SPACE leaves them.',
      after: [],
      isDone: async () => (await missingPackages()).length === 0,
      run: installSystemPackages,
    },
    {
      id: 'go',
      title: 'Fetch the Go toolchain that builds the guest agent',
      estimate: { fetchBytes: 137 * mib, diskBytes: 240 * mib, seconds: 30 },
      where: join(cache, 'go'),
      undo: `rm -r ${join(cache, 'go')}`,
      after: ['system-packages'],
      isDone: async () =>
        (await agentIsThere()) || (await findGo(cache, await minimumGo(guest))) !== undefined,
      run: async (progress, signal) => {
        await prepareGo(cache, await hostSources(signal), await minimumGo(guest), { progress, signal })
      },
    },
    {
      id: 'agent',
      title: 'Build the guest agent',
      estimate: { fetchBytes: 10 * mib, diskBytes: 250 * mib, seconds: 60 },
      where: join(cache, 'agent'),
      undo: `rm -r ${join(cache, 'agent')} ${join(cache, 'go')}`,
      after: ['go'],
      isDone: agentIsThere,
      run: async (progress, signal) => {
        progress('compiling')
        await builtAgent(signal)
      },
    },
    {
      id: 'kernel',
      title: "Fetch and unpack the guests' kernel (Debian's cloud kernel; it is not installed)",
      estimate: { fetchBytes: 36 * mib, diskBytes: 145 * mib, seconds: 20 },
      where: join(cache, 'kernel'),
      undo: `rm -r ${join(cache, 'kernel')}`,
      after: ['system-packages'],
      isDone: async () => (await cachedKernel(cache, override)) !== undefined,
      run: async (progress, signal) => {
        await prepareKernel(cache, await hostSources(signal), { ...kernelChoice, progress, signal })
      },
    },
    {
      id: 'guest-image',
      title: 'Put the guest image together (kernel, agent, modules)',
      estimate: { fetchBytes: 0, diskBytes: 15 * mib, seconds: 2 },
      where: paths.images,
      undo: `rm -r ${paths.images}`,
      after: ['agent', 'kernel'],
      isDone: async () => await guestImageIsCurrent(paths, guest, override),
      run: async (_progress, signal) => {
        const kernel = await prepareKernel(cache, [], { ...kernelChoice, signal })
        // Built already, unless its sources changed since.
        await makeGuestImage(home, kernel, await builtAgent(signal))
      },
    },
    {
      id: 'clock',
      title: "Measure the processor's time stamp counter, which guests keep their clock by",
      estimate: { fetchBytes: 0, diskBytes: 0, seconds: 2 },
      where: paths.hostFacts,
      undo: `rm ${paths.hostFacts}`,
      after: [],
      isDone: async () => (await loadHostFacts(home)) !== undefined,
      run: async (_progress, signal) => {
        await measureHost(home, signal)
      },
    },
    {
      id: 'base-template',
      title: 'Make the `base` template (Debian 12 with Node.js, Python, git, gcc)',
      estimate: { fetchBytes: 130 * mib, diskBytes: 540 * mib, seconds: 90 },
      where: paths.templates,
      undo: `rm -r ${paths.templates}`,
      after: ['system-packages'],
      isDone: async () => await templates.isCurrent('base'),
      run: async (progress, signal) => {
        await templates.rebuild('base', progress, signal)
      },
    },
  ]
  if (options.baseSnapshot !== undefined)
    steps.push({
      id: 'base-snapshot',
      title: 'Boot `base` once and keep its memory, so that every create is a restore',
      estimate: { fetchBytes: 0, diskBytes: 130 * mib, seconds: 20 },
      where: paths.templates,
      undo: `rm -r ${paths.templates}/*/bases`,
      after: ['guest-image', 'clock', 'base-template'],
      isDone: options.baseSnapshot.isDone,
      run: options.baseSnapshot.run,
    })
  return steps
}
