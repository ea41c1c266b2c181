/** Bodies of the data plane: exec, stdin, resize. */
import { type Static, Type } from 'typebox'
import { limits } from '../limits.ts'
import { nullableInteger, nullableString, oneOf } from './parts.ts'
import { commandFields, exitReasons } from './process.ts'

export const ExecRequest = Type.Object(
  {
    ...commandFields,
    input: Type.Optional(Type.String({ description: 'Given to stdin, which is then closed.' })),
    input_encoding: Type.Optional(oneOf(['utf-8', 'base64'], { default: 'utf-8' })),
    output_limit_bytes: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: limits.exec_output_bytes,
        default: limits.exec_output_default_bytes,
        description: 'How much of each stream is answered; the rest is dropped and said to be truncated.',
      }),
    ),
  },
  { $id: 'ExecRequest', additionalProperties: false },
)
export type ExecRequest = Static<typeof ExecRequest>

const encoding = oneOf(['utf-8', 'base64'], { description: '`base64` when the bytes are not valid UTF-8.' })

export const ExecAnswer = Type.Object(
  {
    process_id: Type.String(),
    exit_code: nullableInteger(),
    signal: nullableInteger(),
    timed_out: Type.Boolean(),
    reason: oneOf(exitReasons),
    errno: nullableString(),
    stdout: Type.String(),
    stderr: Type.String(),
    stdout_encoding: encoding,
    stderr_encoding: encoding,
    stdout_truncated: Type.Boolean(),
    stderr_truncated: Type.Boolean(),
  },
  { $id: 'ExecAnswer' },
)
export type ExecAnswer = Static<typeof ExecAnswer>

export const StdinAnswer = Type.Object(
  { next_offset: Type.Integer({ description: 'Send this as `Stdin-Offset` with the next bytes.' }) },
  { $id: 'StdinAnswer' },
)
export type StdinAnswer = Static<typeof StdinAnswer>
