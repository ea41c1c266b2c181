/** `POST /v1/sandboxes/{id}/exec`: a command run to its end in one call. */
import { createHash, randomBytes } from 'node:crypto'
import {
  checkCommand,
  ExecAnswer,
  ExecRequest,
  formId,
  idEntropyBytes,
  isId,
  limits,
  PublicError,
  ref,
} from '@space/contract'
import { AuthorizeRequest_Action } from '@space/contract/node-link'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { exec } from '../processes/exec.ts'
import type { ProcessCommand } from '../store/process-rows.ts'
import { bearerOf } from './bearer.ts'
import type { DataPlaneOptions } from './data-plane.ts'
import { gone } from './gone.ts'
import { wakeAndRun } from './wake.ts'

interface ExecHttpRequest {
  Params: { id: string }
  Body: ExecRequest
}

export function execRoute(app: FastifyInstance, options: DataPlaneOptions): void {
  const { authorizer, processes } = options
  app.post<ExecHttpRequest>(
    '/v1/sandboxes/:id/exec',
    { schema: { body: ref(ExecRequest), response: { 200: ref(ExecAnswer) } } },
    async (request, reply) => {
      const token = bearerOf(request.headers.authorization)
      const sandboxId = sandboxIdOf(request.params.id)
      const { accountId } = await authorizer.allow(token, { action: AuthorizeRequest_Action.EXEC, sandboxId })
      const input = inputOf(request.body)
      const process = processOf(options, request, accountId, sandboxId, commandOf(request.body, input))
      if (process.replayed) reply.header('idempotent-replayed', 'true')
      const journal = await wakeAndRun(options, sandboxId, () => processes.attach(sandboxId, process.id))
      const outputLimitBytes = request.body.output_limit_bytes ?? limits.exec_output_default_bytes
      return await exec(processes, journal, {
        sandboxId,
        processId: process.id,
        input: process.replayed ? undefined : input,
        outputLimitBytes,
        killWhenGone: process.key === undefined,
        signal: gone(reply),
      })
    },
  )
}

function sandboxIdOf(id: string): string {
  if (!isId('sandbox', id)) throw new PublicError('not_found', 'There is no such sandbox.')
  return id
}

function inputOf({ input, input_encoding }: ExecRequest): Buffer | undefined {
  if (input === undefined) return undefined
  const bytes = Buffer.from(input, input_encoding === 'base64' ? 'base64' : 'utf8')
  if (bytes.length <= limits.exec_input_bytes) return bytes
  const message = `input has ${bytes.length} bytes, at most ${limits.exec_input_bytes} are taken: create a command with a stdin pipe.`
  throw new PublicError('invalid_request', message, {
    details: { field: 'input', limit: limits.exec_input_bytes },
  })
}

function commandOf(body: ExecRequest, input: Buffer | undefined): ProcessCommand {
  checkCommand(body)
  const seconds = Math.min(body.timeout_seconds ?? limits.exec_seconds, limits.exec_seconds)
  return {
    argv: body.argv,
    env: body.env ?? {},
    cwd: body.cwd ?? '',
    user: body.user ?? '',
    stdinPipe: input !== undefined,
    pty: undefined,
    timeoutMs: Math.max(1, Math.round(seconds * 1000)),
    keepAwake: body.keep_awake ?? true,
    metadata: body.metadata ?? {},
  }
}

interface ExecProcess {
  readonly id: string
  readonly key: string | undefined
  readonly replayed: boolean
}

/** A new process, or the one that an earlier request with this key made: in one step, so that two at once make one. */
function processOf(
  { repeatedRequests, processes, sandboxes, nowMs }: DataPlaneOptions,
  request: FastifyRequest<ExecHttpRequest>,
  accountId: string,
  sandboxId: string,
  command: ProcessCommand,
): ExecProcess {
  const key = idempotencyKey(request.headers['idempotency-key'])
  const requestHash = createHash('sha256')
    .update(`${sandboxId}\n${JSON.stringify(request.body)}`)
    .digest('hex')
  const known = key === undefined ? undefined : repeatedRequests.get(accountId, key)
  if (known !== undefined && known.requestHash !== requestHash) {
    throw new PublicError(
      'idempotency_conflict',
      'This Idempotency-Key belongs to another request: use a new one.',
    )
  }
  if (known !== undefined) return { id: known.processId, key, replayed: true }
  if (sandboxes.get(sandboxId) === undefined) throw new PublicError('not_found', 'There is no such sandbox.')
  const id = formId('process', randomBytes(idEntropyBytes))
  processes.create({ processId: id, sandboxId, sessionId: '', command, createdAtMs: nowMs() })
  if (key !== undefined) repeatedRequests.insert(accountId, key, { requestHash, processId: id }, nowMs())
  return { id, key, replayed: false }
}

function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (
    typeof header === 'string' &&
    /^[\x20-\x7e]+$/.test(header) &&
    header.length <= limits.idempotency_key_bytes
  ) {
    return header
  }
  const message = `Idempotency-Key is 1 to ${limits.idempotency_key_bytes} printable ASCII characters.`
  throw new PublicError('invalid_request', message, { details: { field: 'Idempotency-Key' } })
}
