/**
 * Every limit of the public contract by name, with its unit in the name. `GET /v1/limits` answers exactly this object,
 * and nothing else in the project repeats one of these numbers.
 */
export const limits = {
  json_body_bytes: 1_048_576,

  metadata_pairs: 64,
  metadata_key_bytes: 128,
  metadata_value_bytes: 1024,

  env_entries: 256,
  /** Linux takes no single argument or environment string above this. */
  command_string_bytes: 131_071,
  argv_entries: 4096,
  argv_bytes: 262_144,
  path_bytes: 4096,
  user_name_bytes: 256,
  command_timeout_seconds: 604_800,
  pty_size: 65_535,

  vcpus: 64,
  memory_mib_min: 128,
  memory_mib: 262_144,
  disk_mib_min: 1024,
  disk_mib: 1_048_576,
  default_vcpus: 1,
  default_memory_mib: 1024,
  default_disk_mib: 8192,

  lifetime_seconds: 31_536_000,
  template_ref_bytes: 256,
  name_bytes: 128,

  list_default: 100,
  list_max: 1000,
  prefer_wait_seconds: 60,
  create_wait_seconds: 30,
  idempotency_key_bytes: 255,
  idempotency_seconds: 86_400,
  operation_seconds: 604_800,

  session_attach_seconds: 600,
  stream_keep_alive_seconds: 15,
  journal_bytes: 268_435_456,
  journal_seconds: 86_400,
  stdin_chunk_bytes: 262_144,
  exec_input_bytes: 786_432,
  exec_output_default_bytes: 1_048_576,
  exec_output_bytes: 8_388_608,
  exec_seconds: 3600,
} as const

export type LimitName = keyof typeof limits
