import type { ErrorBody } from '@space/contract'

/** What a node says a sandbox is; `absent`: the node was asked and holds nothing of it. */
export type Observation =
  | { readonly state: 'creating' }
  | { readonly state: 'running'; readonly startedAtMs: number }
  | { readonly state: 'failed'; readonly error: ErrorBody }
  | { readonly state: 'quarantined'; readonly error: ErrorBody }
  | { readonly state: 'absent' }

export type SandboxEvent =
  | {
      readonly kind: 'create_requested'
      readonly operationId: string
      readonly expiresAtMs: number | undefined
    }
  | { readonly kind: 'delete_requested'; readonly operationId: string }
  /** An application moved the end of the sandbox; undefined = never. */
  | { readonly kind: 'expiry_set'; readonly expiresAtMs: number | undefined }
  /** A node was asked; its operation counts as begun. */
  | { readonly kind: 'node_asked'; readonly ask: NodeAsk }
  /** A node reported, or answered a create. */
  | { readonly kind: 'observed'; readonly observation: Observation }
  /** A node refused to create, in a way that trying again does not change. */
  | { readonly kind: 'create_refused'; readonly error: ErrorBody }
  /** A node holds nothing of the sandbox any more. */
  | { readonly kind: 'delete_done' }
  /** Time passed: whatever is due by now is done. */
  | { readonly kind: 'deadline_reached' }

export type NodeAsk = 'create' | 'delete'

export type Effect =
  | { readonly kind: 'operation_opened'; readonly operationId: string; readonly operation: NodeAsk }
  | { readonly kind: 'operation_begun'; readonly operationId: string }
  | { readonly kind: 'operation_succeeded'; readonly operationId: string }
  | { readonly kind: 'operation_failed'; readonly operationId: string; readonly error: ErrorBody }
  /** Make it so; repeatable. The last ask of a sandbox is the one that holds. */
  | { readonly kind: 'ask_node'; readonly ask: NodeAsk }
