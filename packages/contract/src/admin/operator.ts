import type { Static } from 'typebox'
import { maxCredits } from '../limits.ts'
import { Type } from '../type.ts'
import { AccountView } from './account.ts'
import {
  count,
  credits,
  day,
  email,
  flag,
  id,
  name,
  nullable,
  oneOf,
  page,
  pageQuery,
  rate,
  reason,
  text,
  time,
} from './fields.ts'

const health = oneOf('ok', 'degraded', 'down')

/** State of the service and of each part; `detail` explains why a part is degraded or down. */
export const Status = Type.Object({
  status: health,
  parts: Type.Array(Type.Object({ name: text, status: health, detail: text })),
  engines: Type.Array(
    Type.Object({
      name: text,
      /** The subject of the engine: malware in any content, or NSFW content in images. */
      kind: oneOf('malware', 'image'),
      version: nullable(text),
      signatures: nullable(count),
      signatures_at: nullable(time),
      is_up: flag,
    }),
  ),
  /** Engines of the operator outside of Assay, on this node. */
  external_engines: Type.Array(
    Type.Object({
      name: text,
      /** As in assay.toml, such as `clamd`. */
      kind: text,
      version: nullable(text),
      is_required: flag,
      /** Whether the circuit breaker is open: the engine does not answer. */
      is_open: flag,
      fault: nullable(text),
      scans: count,
      failures: count,
      p50_ms: nullable(Type.Number()),
      p99_ms: nullable(Type.Number()),
    }),
  ),
  /** Content that some engines of this node called a threat and others clean, since its start. */
  disagreements: Type.Object({
    count,
    recent: Type.Array(Type.Object({ at: time, sha256: text, status: text, found: text, clean: text })),
  }),
  /** Listeners of this node for clients of clamd and ICAP. */
  listeners: Type.Array(
    Type.Object({
      name: text,
      kind: oneOf('clamd', 'icap'),
      /** As in assay.toml, such as `unix:/run/assay/clamd.sock`. */
      address: text,
      tls: oneOf('off', 'on', 'client certificates'),
      /** The account that scans belong to; null while its API key is not valid. */
      account: nullable(Type.Object({ id, name: text })),
      connections: count,
      max_connections: count,
      /** Connections that were refused since the start. */
      rejected: count,
    }),
  ),
  queue: Type.Object({ waiting: count, running: count, oldest_seconds: Type.Number(), settled_last_minute: count }),
  webhooks: Type.Object({ waiting: count, late_seconds: Type.Number() }),
  latency: Type.Object({ requests: count, p50_ms: nullable(Type.Number()), p99_ms: nullable(Type.Number()) }),
  disk: Type.Object({ data_bytes_free: count, data_bytes_total: count }),
  database: Type.Object({ version: text, bytes: count, connections: count }),
  nodes: Type.Array(Type.Object({ id: text, roles: text, version: text, seen_at: time })),
  memory_bytes: count,
  uptime_seconds: count,
})
export type Status = Static<typeof Status>

export const AccountRow = AccountView
export const Accounts = Type.Array(AccountRow)
export const CreateAccount = Type.Object({
  name,
  plan: text,
  credits: Type.Optional(nullable(credits)),
  rate: Type.Optional(nullable(rate)),
  /** Restricts the invitation link to this address. */
  owner_email: Type.Optional(email),
})
export const CreatedAccount = Type.Object({
  account: AccountRow,
  api_key: text,
  webhook_secret: text,
  invitation_url: nullable(text),
})
export const UpdateAccount = Type.Object({
  name: Type.Optional(name),
  plan: Type.Optional(text),
  credits: Type.Optional(nullable(credits)),
  rate: Type.Optional(nullable(rate)),
  suspended: Type.Optional(flag),
  /** Shown to the members of the suspended account. */
  suspended_reason: Type.Optional(nullable(reason)),
  flags_sexy: Type.Optional(flag),
  expires_at: Type.Optional(nullable(time)),
})
/** An invitation works for its address only. */
export const InviteOwner = Type.Object({ email })

export const Operator = Type.Object({
  id,
  name: text,
  email: text,
  has_totp: flag,
  created_at: time,
  last_seen_at: nullable(time),
  suspended_at: nullable(time),
})
export type Operator = Static<typeof Operator>
export const Operators = Type.Array(Operator)
export const SuspendOperator = Type.Object({ suspended: flag })

export const GrantCredits = Type.Object({ amount: Type.Integer({ minimum: 1, maximum: maxCredits }), note: reason })
export const LedgerRow = Type.Object({
  id: text,
  kind: text,
  amount: Type.Integer(),
  balance: count,
  scan_id: nullable(id),
  note: nullable(text),
  at: time,
})
export const Ledger = Type.Array(LedgerRow)

export const PlanView = Type.Object({
  name: text,
  credits_per_period: count,
  rate: text,
  account_rate: nullable(text),
  max_keys: nullable(count),
  accounts: count,
})
export const Plans = Type.Array(PlanView)
export const SavePlan = Type.Object({
  credits_per_period: credits,
  /** Rate of each key. */
  rate,
  /** Rate of all keys of an account together. Null or absent: none. */
  account_rate: Type.Optional(nullable(rate)),
  /** Active keys that an account may have. Null or absent: any number. */
  max_keys: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 }))),
})

/** A job in the queue, without the content to scan. */
export const JobRow = Type.Object({
  id,
  account_id: id,
  account_name: text,
  scan_type: text,
  state: oneOf('waiting', 'running', 'paused'),
  attempts: count,
  content_length: count,
  created_at: time,
  held_until: nullable(time),
})
export const JobPage = page(JobRow)
export const JobFilter = Type.Object({
  ...pageQuery,
  state: Type.Optional(oneOf('waiting', 'running', 'paused', 'stuck')),
})

export const FailingHosts = Type.Array(
  Type.Object({
    host: text,
    endpoints: count,
    waiting: count,
    dead: count,
    failing_since: nullable(time),
    paused: flag,
  }),
)
export const PauseHost = Type.Object({ host: text, paused: flag })
export const ReplayHost = Type.Object({ host: text, since: time })

export const Signatures = Type.Object({
  files: Type.Array(Type.Object({ path: text, bytes: count, changed_at: time, is_own: flag, source: nullable(text) })),
  /** Build time of ClamAV's official databases. */
  official_at: nullable(time),
  /** A sentence about missing or old databases, or about a failed update. */
  fault: nullable(text),
  refused: Type.Array(Type.Object({ path: text, reason: text })),
  models: Type.Array(Type.Object({ name: text, precision: text })),
})
/** A download of signatures of another publisher, with the state of its last update. */
const Source = Type.Object({
  name: text,
  url: text,
  publisher: nullable(text),
  licence: nullable(text),
  /** Hours between updates; 0 for none. */
  hours: count,
  signatures: nullable(count),
  checked_at: nullable(time),
  changed_at: nullable(time),
  attempted_at: nullable(time),
  /** Why the last update failed. */
  error: nullable(text),
  /** Signatures that are not used because they match a known-good file. */
  held: Type.Array(Type.Object({ name: text, file: text })),
  /** Files that are not used. */
  refused: Type.Array(Type.Object({ file: text, reason: text })),
})
export const Sources = Type.Array(Source)
export const SignatureAdded = Type.Object({ path: text, bytes: count })
export const UpdateStarted = Type.Object({
  state: oneOf('updated', 'up-to-date', 'unavailable', 'failed'),
  detail: text,
})
/** Result of scanning known samples with every engine. */
export const SelfTest = Type.Object({
  ok: flag,
  checks: Type.Array(Type.Object({ name: text, ok: flag, detail: text })),
})

export const ListEntry = Type.Object({
  id,
  list: oneOf('allow', 'block'),
  matches: oneOf('sha256', 'signal'),
  value: text,
  reason: text,
  created_by: text,
  created_at: time,
  expires_at: nullable(time),
})
export type ListEntry = Static<typeof ListEntry>
export const ListEntries = Type.Array(ListEntry)
export const AddListEntry = Type.Object({
  list: oneOf('allow', 'block'),
  matches: oneOf('sha256', 'signal'),
  /** The hash, or the signal as results show it, such as Virus:Eicar-Test-Signature. */
  value: Type.String({ minLength: 1, maxLength: 300 }),
  reason,
  expires_at: Type.Optional(nullable(time)),
})

export const AuditRow = Type.Object({
  id: text,
  at: time,
  actor: text,
  action: text,
  target: nullable(text),
  account_name: nullable(text),
  detail: nullable(text),
  address: nullable(text),
})
export const AuditPage = page(AuditRow)
export const AuditFilter = Type.Object({
  ...pageQuery,
  /** First part of the name of the action, such as `key.`. */
  action: Type.Optional(Type.String({ maxLength: 100 })),
  /** Part of the name of the person or program, in any case. */
  actor: Type.Optional(Type.String({ maxLength: 254 })),
  from: Type.Optional(day),
  to: Type.Optional(day),
})

export const System = Type.Object({
  version: text,
  node_version: text,
  region: text,
  roles: text,
  settings: Type.Array(Type.Object({ name: text, value: nullable(text), origin: text, about: text, secret: flag })),
})
export const BackupDone = Type.Object({ directory: text, rows: count, files: count })
