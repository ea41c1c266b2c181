import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ServiceImpl } from '@connectrpc/connect'
import { type Account, limits, scopes } from '@space/contract'
import type { ControlService } from '@space/contract/node-link'
import { defaultLifecycleLimits, type LifecycleLimits } from '@space/core'
import { type Logger, pino } from 'pino'
import { loadBearerKey } from './auth/keys.ts'
import { Sessions } from './auth/sessions.ts'
import { Tokens } from './auth/tokens.ts'
import { type Clock, systemClock } from './clock.ts'
import { accountAnswer } from './http/answers/account.ts'
import type { App } from './http/api.ts'
import { createApp } from './http/app.ts'
import { controlService } from './node-link/control-service.ts'
import { askNode, type NodeApi } from './node-link/node.ts'
import { NodeReports } from './node-link/reports.ts'
import { Templates } from './node-link/templates.ts'
import { Bell } from './operations/bell.ts'
import { randomIds } from './operations/ids.ts'
import { Lifecycle } from './operations/lifecycle.ts'
import { Requests } from './operations/requests.ts'
import { defaultReconcilerLimits, Reconciler, type ReconcilerLimits } from './reconcile/reconciler.ts'
import { defaultSweepLimits, Sweep, type SweepLimits } from './reconcile/sweep.ts'
import { findAccountByName, insertAccount } from './store/accounts.ts'
import { openSqliteStore } from './store/sqlite/store.ts'
import type { Store } from './store/store.ts'

export interface ControlOptions {
  /** The folder control keeps its state in (`SPACE_HOME/control`); made when missing, mode 0700. */
  readonly folder: string
  readonly apiUrl: string
  readonly dataPlaneUrl: string
  readonly nodeApi: NodeApi
  readonly clock?: Clock
  readonly log?: Logger
  /** Browser origins the API answers; none by default. */
  readonly corsOrigins?: readonly string[]
  /** How long the output of an ended process is kept, and with it the tokens of its sessions. */
  readonly journalSeconds?: number
  readonly lifecycleLimits?: LifecycleLimits
  readonly reconcilerLimits?: ReconcilerLimits
  readonly sweepLimits?: SweepLimits
}

export interface Control {
  /** The API, ready to listen. */
  readonly app: App
  /** What a node may ask. */
  readonly controlApi: ServiceImpl<typeof ControlService>
  /** Begins to turn what was asked for into what nodes do. */
  start(): Promise<void>
  /** Answers what is under way and stops; what nodes were asked stays in the outbox. Twice is fine. */
  close(): Promise<void>
  /** The first account and a token with every scope; the same ones each time, unless the token was revoked. */
  bootstrap(): Promise<{ account: Account; token: string }>
}

const firstAccount = 'default'
const firstToken = 'space up'

/** Puts the control plane together over a folder and a node. */
export async function createControl(options: ControlOptions): Promise<Control> {
  mkdirSync(options.folder, { recursive: true, mode: 0o700 })
  const log = (options.log ?? pino({ level: 'silent' })).child({ part: 'control' })
  const clock = options.clock ?? systemClock
  const key = loadBearerKey(join(options.folder, 'keys'))
  const store = await openSqliteStore(join(options.folder, 'control.sqlite'))
  const { nodeApi, apiUrl, dataPlaneUrl } = options
  const bell = new Bell()
  const lifecycle = new Lifecycle(store, clock, options.lifecycleLimits ?? defaultLifecycleLimits, bell)
  const tokens = new Tokens(store, key, clock)
  const journalMs = (options.journalSeconds ?? limits.journal_seconds) * 1000
  const sessions = new Sessions(store, key, clock, journalMs)
  const reports = new NodeReports(lifecycle, nodeApi, log)
  let node: string | null = null
  const reconcilerLimits = options.reconcilerLimits ?? defaultReconcilerLimits
  const reconciler = new Reconciler(lifecycle, nodeApi, log, reconcilerLimits, () => node)
  const sweep = new Sweep(lifecycle, tokens, reports, log, options.sweepLimits ?? defaultSweepLimits)
  const app = await createApp({
    store,
    lifecycle,
    requests: new Requests(store, clock),
    tokens,
    sessions,
    templates: new Templates(nodeApi),
    nodeApi,
    apiUrl,
    dataPlaneUrl,
    corsOrigins: options.corsOrigins ?? [],
    log,
  })

  let closing: Promise<void> | undefined
  const close = async () => {
    await app.close()
    await sweep.close()
    await reconciler.close()
    await reports.close()
    await store.close()
  }
  return {
    app,
    controlApi: controlService({ lifecycle, tokens, sessions, reports, log }),
    async start() {
      node = await askNode((call) => nodeApi.inspect({}, call)).then(
        (facts) => facts.name,
        () => null,
      )
      await reconciler.start()
      sweep.start()
    },
    close: () => {
      closing ??= close()
      return closing
    },
    bootstrap: () => bootstrap(store, tokens, clock),
  }
}

async function bootstrap(store: Store, tokens: Tokens, clock: Clock) {
  return await store.write(async (db) => {
    const ids = randomIds()
    const account =
      (await findAccountByName(db, firstAccount)) ??
      (await insertAccount(db, { id: ids('account'), name: firstAccount, createdAtMs: clock.nowMs() }))
    const known = await db
      .selectFrom('tokens')
      .select('id')
      .where('account_id', '=', account.id)
      .where('name', '=', firstToken)
      .where('revoked_at', 'is', null)
      .executeTakeFirst()
    if (known) return { account: accountAnswer(account), token: tokens.valueOf(known.id) }
    const { value } = await tokens.create(db, {
      id: ids('token'),
      accountId: account.id,
      name: firstToken,
      scopes: [...scopes],
      expiresAtMs: null,
    })
    return { account: accountAnswer(account), token: value }
  })
}
