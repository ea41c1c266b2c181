import { type Static, Type } from 'typebox'
import { limits } from '../limits.ts'
import { RecordedError } from './error.ts'
import { nullableRef, nullableString, nullableTime, oneOf, page, ref, stringMap, time } from './parts.ts'

export const sandboxStates = [
  'creating',
  'running',
  'pausing',
  'paused',
  'suspending',
  'suspended',
  'waking',
  'deleting',
  'deleted',
  'failed',
  'quarantined',
] as const
export type SandboxState = (typeof sandboxStates)[number]

export const Environment = Type.Object(
  {
    id: Type.String({
      description: 'firecracker-kvm, qemu-kvm or qemu-tcg (emulated: slower, not for production).',
    }),
    machine: Type.String({ description: 'The virtual machine monitor with its version.' }),
    accelerator: Type.String(),
    kernel: Type.String({ description: 'The guest kernel release.' }),
  },
  { $id: 'Environment', description: 'What runs the sandbox.' },
)
export type Environment = Static<typeof Environment>

export const Resources = Type.Object(
  {
    vcpus: Type.Integer({ minimum: 1, maximum: limits.vcpus }),
    memory_mib: Type.Integer({ minimum: limits.memory_mib_min, maximum: limits.memory_mib }),
    disk_mib: Type.Integer({ minimum: limits.disk_mib_min, maximum: limits.disk_mib }),
  },
  { $id: 'Resources', additionalProperties: false },
)
export type Resources = Static<typeof Resources>

export const TemplateUse = Type.Object(
  {
    ref: Type.String({ description: 'As it was asked for.' }),
    digest: Type.String({ description: 'What it resolved to: `sha256:` and 64 hexadecimal digits.' }),
  },
  { $id: 'TemplateUse' },
)
export type TemplateUse = Static<typeof TemplateUse>

export const SandboxUrls = Type.Object(
  {
    data_plane: Type.String(),
    ports: nullableString({ description: 'URL with `{port}` in it, null while ports are not served.' }),
  },
  { $id: 'SandboxUrls' },
)

export const Sandbox = Type.Object(
  {
    id: Type.String(),
    state: oneOf(sandboxStates),
    template: ref(TemplateUse),
    resources: ref(Resources),
    metadata: stringMap(),
    network: Type.Unsafe<Record<string, unknown> | null>({
      anyOf: [{ type: 'object', additionalProperties: true }, { type: 'null' }],
      description: 'The network policy; null: the sandbox has no network.',
      'x-incubating': true,
    }),
    idle_timeout_seconds: Type.Integer({ description: '0 = never.' }),
    on_idle: oneOf(['suspend', 'pause', 'delete']),
    on_expire: oneOf(['delete', 'suspend'], { 'x-incubating': true }),
    auto_wake: Type.Boolean({ 'x-incubating': true }),
    node: nullableString(),
    created_at: time(),
    started_at: nullableTime(),
    last_active_at: nullableTime(),
    suspended_at: nullableTime(),
    expires_at: nullableTime(),
    environment: nullableRef(Environment),
    last_error: nullableRef(RecordedError),
    urls: ref(SandboxUrls),
  },
  { $id: 'Sandbox' },
)
export type Sandbox = Static<typeof Sandbox>

export const SandboxPage = page(Sandbox, 'SandboxPage')
export type SandboxPage = Static<typeof SandboxPage>

const lifetime = {
  expires_at: Type.Optional(
    nullableTime({ description: 'When `on_expire` happens regardless of activity.' }),
  ),
  on_expire: Type.Optional(oneOf(['delete'], { 'x-incubating': true })),
}

export const CreateSandboxRequest = Type.Object(
  {
    template: Type.String({
      minLength: 1,
      description: '`name`, `name:tag` or `sha256:<64 hex>`. `base` is the default system template.',
    }),
    metadata: Type.Optional(stringMap()),
    resources: Type.Optional(
      Type.Object(
        {
          vcpus: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.vcpus })),
          memory_mib: Type.Optional(
            Type.Integer({ minimum: limits.memory_mib_min, maximum: limits.memory_mib }),
          ),
          disk_mib: Type.Optional(Type.Integer({ minimum: limits.disk_mib_min, maximum: limits.disk_mib })),
        },
        { additionalProperties: false, description: "What is left out comes from the template's defaults." },
      ),
    ),
    env: Type.Optional(stringMap({ description: 'Environment of every command, under its own.' })),
    ...lifetime,
    lifetime_seconds: Type.Optional(
      Type.Integer({ minimum: 1, maximum: limits.lifetime_seconds, description: 'Instead of `expires_at`.' }),
    ),
  },
  { $id: 'CreateSandboxRequest', additionalProperties: false },
)
export type CreateSandboxRequest = Static<typeof CreateSandboxRequest>

export const UpdateSandboxRequest = Type.Object(
  { metadata: Type.Optional(stringMap({ description: 'Replaces all pairs.' })), ...lifetime },
  { $id: 'UpdateSandboxRequest', additionalProperties: false },
)
export type UpdateSandboxRequest = Static<typeof UpdateSandboxRequest>
