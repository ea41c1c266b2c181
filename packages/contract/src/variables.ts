/**
 * The one table of environment variables: `docs/configuration.md` is generated from it, and nothing else in the
 * project reads `process.env` for a setting. Units are in the name or in `unit`.
 */
export interface Variable {
  readonly name: string
  readonly default: string
  readonly unit: string
  readonly meaning: string
}

export const variables = [
  {
    name: 'SPACE_HOME',
    default: '/var/lib/space',
    unit: 'path',
    meaning: 'Where everything SPACE keeps lies: databases, images, templates, sandboxes.',
  },
  {
    name: 'SPACE_API_URL',
    default: 'http://127.0.0.1:7070',
    unit: 'URL',
    meaning: 'Where the API listens (servers) or is found (clients).',
  },
  {
    name: 'SPACE_DATA_PLANE_URL',
    default: 'http://127.0.0.1:7071',
    unit: 'URL',
    meaning: 'Where the data plane listens: command streams, stdin, exec.',
  },
  {
    name: 'SPACE_API_TOKEN',
    default: '',
    unit: 'token',
    meaning: 'The bearer token a client sends; by default the one in the client configuration file.',
  },
  {
    name: 'SPACE_CONFIG',
    default: '~/.config/space/config.json',
    unit: 'path',
    meaning: 'The client configuration file: address and token, mode 0600.',
  },
  {
    name: 'SPACE_MACHINE',
    default: '',
    unit: 'qemu | firecracker',
    meaning: 'Forces a VMM instead of the best one this host offers.',
  },
  {
    name: 'SPACE_KERNEL',
    default: '',
    unit: 'path of a linux-image .deb',
    meaning: "A kernel package to use instead of Debian's linux-image-cloud-amd64.",
  },
  {
    name: 'SPACE_READY_MACHINES',
    default: '2',
    unit: 'processes',
    meaning: 'How many VMM processes of the default shape wait ahead of a create.',
  },
  {
    name: 'SPACE_JOURNAL_BYTES',
    default: '268435456',
    unit: 'bytes',
    meaning: "How much of each process's output is kept; the oldest goes first and is counted.",
  },
  {
    name: 'SPACE_JOURNAL_SECONDS',
    default: '86400',
    unit: 'seconds',
    meaning: "How long a process's output is kept after its exit.",
  },
  {
    name: 'SPACE_LOG_LEVEL',
    default: 'info',
    unit: 'fatal | error | warn | info | debug | trace',
    meaning: 'How much the servers log.',
  },
] as const satisfies readonly Variable[]

export type VariableName = (typeof variables)[number]['name']
