import { create, type MessageInitShape } from '@bufbuild/protobuf'
import {
  type AttachRequest,
  AttachRequestSchema,
  type ResizeSchema,
  type StartSchema,
  type StdinCloseSchema,
  type StdinSchema,
} from '@space/contract/guest'

/** The request side of one Attach call: what was not sent yet, bounded, with acknowledgements folded into the newest. */
export interface AttachRequests extends AsyncIterable<AttachRequest> {
  /** Every output byte below is in the journal. Only the newest waits to be sent. */
  ack(offset: bigint): void
  /** Resolves once the piece was taken to be sent, false when the call had ended before. At most 256 KiB. */
  stdin(offset: bigint, data: Uint8Array): Promise<boolean>
  /** Closes stdin once all bytes below were written; ordered behind the pieces given before. */
  stdinClose(offset: bigint): Promise<boolean>
  resize(cols: number, rows: number): Promise<boolean>
  /** Ends the request side, the process goes on. Idempotent. */
  end(): void
}

type Kind =
  | { readonly case: 'start'; readonly value: MessageInitShape<typeof StartSchema> }
  | { readonly case: 'join'; readonly value: { readonly processId: string; readonly fromOffset: bigint } }
  | { readonly case: 'stdin'; readonly value: MessageInitShape<typeof StdinSchema> }
  | { readonly case: 'stdinClose'; readonly value: MessageInitShape<typeof StdinCloseSchema> }
  | { readonly case: 'resize'; readonly value: MessageInitShape<typeof ResizeSchema> }

/** How a call begins: by starting a process, or by joining one that exists. */
export type AttachFirst = Extract<Kind, { case: 'start' | 'join' }>

interface Waiting {
  readonly kind: Kind
  readonly taken: (sent: boolean) => void
}

/** Requests of one Attach call, its first one given. To be iterated once, by the call. */
export function attachRequests(first: AttachFirst): AttachRequests {
  const waiting: Waiting[] = [{ kind: first, taken: nobody }]
  let ackOffset: bigint | undefined
  let ended = false
  let wake: (() => void) | undefined

  return {
    ack(offset) {
      if (ackOffset === undefined || offset > ackOffset) ackOffset = offset
      wake?.()
    },
    stdin: (offset, data) => put({ case: 'stdin', value: { offset, data } }),
    stdinClose: (offset) => put({ case: 'stdinClose', value: { offset } }),
    resize: (cols, rows) => put({ case: 'resize', value: { cols, rows } }),
    end,
    async *[Symbol.asyncIterator]() {
      try {
        for (;;) {
          const next = waiting.shift()
          if (next !== undefined) {
            next.taken(true)
            yield create(AttachRequestSchema, { kind: next.kind })
          } else if (ackOffset !== undefined) {
            const offset = ackOffset
            ackOffset = undefined
            yield create(AttachRequestSchema, { kind: { case: 'ack', value: { offset } } })
          } else if (ended) return
          else
            await new Promise<void>((resolve) => {
              wake = resolve
            })
        }
      } finally {
        end()
      }
    },
  }

  function put(kind: Kind): Promise<boolean> {
    if (ended) return Promise.resolve(false)
    return new Promise((taken) => {
      waiting.push({ kind, taken })
      wake?.()
    })
  }

  function end(): void {
    ended = true
    for (const { taken } of waiting.splice(0)) taken(false)
    wake?.()
  }
}

function nobody(): void {
  // The first request is nobody's to wait for.
}
