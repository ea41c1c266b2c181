import { CliFailure } from '../failure.ts'

/** Throws, with the one thing to do, when this process may not do what serving needs. */
export function requireServerHost(command: string): void {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new CliFailure(`SPACE serves on x86-64 Linux; this is ${process.platform} ${process.arch}`, {
      code: 'host_unsupported',
      remedy: 'run it on an x86-64 Linux machine and use `space login URL` here',
    })
  if (process.geteuid?.() !== 0)
    throw new CliFailure('this needs root: it makes network namespaces, cgroups and users for the microVMs', {
      code: 'not_root',
      remedy: `sudo ${command}`,
    })
}
