import { type Static, Type } from 'typebox'
import { limits } from '../limits.ts'
import { nullableInteger, nullableString, nullableTime, oneOf, page, ref, stringMap, time } from './parts.ts'

export const processStates = ['created', 'starting', 'running', 'exited', 'failed_to_start', 'lost'] as const
export type ProcessState = (typeof processStates)[number]

export const exitReasons = [
  'exited',
  'signalled',
  'timeout',
  'out_of_memory',
  'failed_to_start',
  'cancelled',
  'lost',
  'sandbox_deleted',
] as const
export type ExitReason = (typeof exitReasons)[number]

export const ProcessOutput = Type.Object(
  {
    bytes: Type.Integer({ description: 'Bytes kept in the journal.' }),
    first_offset: Type.Integer({ description: 'The oldest byte kept.' }),
    next_offset: Type.Integer({ description: 'Where the next byte of output will be.' }),
  },
  { $id: 'ProcessOutput' },
)

export const Process = Type.Object(
  {
    id: Type.String(),
    sandbox_id: Type.String(),
    state: oneOf(processStates),
    pid: nullableInteger({ description: 'As the sandbox sees it.' }),
    argv: Type.Array(Type.String()),
    metadata: stringMap(),
    exit_code: nullableInteger({ description: 'Null while it runs, and when a signal ended it.' }),
    signal: nullableInteger({ description: 'The number of the Linux signal that ended it, or null.' }),
    timed_out: Type.Boolean(),
    reason: Type.Unsafe<ExitReason | null>({ type: ['string', 'null'], enum: [...exitReasons, null] }),
    errno: nullableString({ description: 'The name of the error that kept it from starting: `ENOENT` …' }),
    created_at: time(),
    started_at: nullableTime(),
    exited_at: nullableTime(),
    output: ref(ProcessOutput),
  },
  { $id: 'Process' },
)
export type Process = Static<typeof Process>

export const ProcessPage = page(Process, 'ProcessPage')
export type ProcessPage = Static<typeof ProcessPage>

export const Session = Type.Object(
  {
    id: Type.String(),
    events_url: Type.String({ description: 'Attaching to it with the token as bearer starts the process.' }),
    token: Type.String({ description: 'Opens this one session on the data plane and nothing else.' }),
    expires_at: time({
      description: 'Attach before this; an attached session lasts as long as the output is kept.',
    }),
  },
  { $id: 'Session' },
)
export type Session = Static<typeof Session>

/** The fields of a command, shared by `commands` and `exec`. Bytes are checked by `checkCommand`. */
export const commandFields = {
  argv: Type.Array(Type.String(), {
    minItems: 1,
    maxItems: limits.argv_entries,
    description: `The program and its arguments; no shell is implied. Together at most ${limits.argv_bytes} bytes.`,
  }),
  env: Type.Optional(stringMap({ description: "Over the sandbox's environment." })),
  cwd: Type.Optional(Type.String({ description: "Absolute path; the user's home by default." })),
  user: Type.Optional(Type.String({ description: "A name, `uid` or `uid:gid`; the template's by default." })),
  timeout_seconds: Type.Optional(
    Type.Number({ exclusiveMinimum: 0, maximum: limits.command_timeout_seconds }),
  ),
  keep_awake: Type.Optional(Type.Boolean({ default: true, 'x-incubating': true })),
  metadata: Type.Optional(stringMap()),
}

export const PtySize = Type.Object(
  {
    cols: Type.Integer({ minimum: 1, maximum: limits.pty_size }),
    rows: Type.Integer({ minimum: 1, maximum: limits.pty_size }),
  },
  { $id: 'PtySize', additionalProperties: false },
)
export type PtySize = Static<typeof PtySize>

export const CommandRequest = Type.Object(
  {
    ...commandFields,
    stdin: Type.Optional(oneOf(['null', 'pipe'], { default: 'null' })),
    pty: Type.Optional(ref(PtySize)),
  },
  { $id: 'CommandRequest', additionalProperties: false },
)
export type CommandRequest = Static<typeof CommandRequest>

export const CommandAnswer = Type.Object(
  { process: ref(Process), session: ref(Session) },
  { $id: 'CommandAnswer' },
)
export type CommandAnswer = Static<typeof CommandAnswer>

export const SessionAnswer = Type.Object({ session: ref(Session) }, { $id: 'SessionAnswer' })
export type SessionAnswer = Static<typeof SessionAnswer>

export const signalScopes = ['process', 'group', 'tree'] as const

export const SignalRequest = Type.Object(
  {
    signal: Type.Unsafe<string | number>({
      anyOf: [{ type: 'string' }, { type: 'integer', minimum: 1, maximum: 64 }],
      description: 'A Linux signal by name (`SIGTERM`, `TERM`, `SIGRTMIN+1`) or number.',
    }),
    scope: Type.Optional(oneOf(signalScopes, { default: 'group', 'x-incubating': true })),
  },
  { $id: 'SignalRequest', additionalProperties: false },
)
export type SignalRequest = Static<typeof SignalRequest>
