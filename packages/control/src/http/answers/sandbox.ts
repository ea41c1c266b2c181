import type { Environment, RecordedError, Sandbox } from '@space/contract'
import { toNullableTime, toTime } from '../../clock.ts'
import type { SandboxRow } from '../../store/schema.ts'

/** A sandbox as it is answered. */
export function sandboxAnswer(row: SandboxRow, dataPlaneUrl: string): Sandbox {
  return {
    id: row.id,
    state: row.state,
    template: { ref: row.template_ref, digest: row.template_digest },
    resources: { vcpus: row.vcpus, memory_mib: row.memory_mib, disk_mib: row.disk_mib },
    metadata: JSON.parse(row.metadata) as Record<string, string>,
    network: null,
    idle_timeout_seconds: 0,
    on_idle: 'suspend',
    on_expire: 'delete',
    auto_wake: true,
    node: row.node,
    created_at: toTime(row.created_at),
    started_at: toNullableTime(row.started_at),
    last_active_at: toNullableTime(row.last_active_at),
    suspended_at: null,
    expires_at: toNullableTime(row.expires_at),
    environment: row.environment === null ? null : (JSON.parse(row.environment) as Environment),
    last_error: row.last_error === null ? null : (JSON.parse(row.last_error) as RecordedError),
    urls: { data_plane: dataPlaneUrl, ports: null },
  }
}
