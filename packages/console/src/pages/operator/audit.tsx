import type { Answer } from '../../api/call.ts'
import { useRead } from '../../api/hooks.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { ExportLinks } from '../../ui/export-links.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { toDateTime } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Page } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'

type Entry = Answer<'listAudit'>['items'][number]

/** Prefixes of the action names, with the label of each filter. */
const subjects: [prefix: string, label: string][] = [
  ['', 'All'],
  ['account.', 'Accounts'],
  ['credits.', 'Credits'],
  ['plan.', 'Plans'],
  ['key.', 'API keys'],
  ['member.', 'Members'],
  ['operator.', 'Operators'],
  ['recovery-code', 'Recovery codes'],
  ['session.', 'Sign-in and sign-out'],
  ['password.', 'Passwords'],
  ['totp.', 'Authenticator apps'],
  ['list.', 'Allow and block'],
  ['hashes.', 'Hash lists'],
  ['signatures.', 'Signatures'],
  ['job.', 'Jobs'],
  ['webhook', 'Webhooks'],
  ['delivery.', 'Deliveries'],
  ['host.', 'Receivers by host'],
  ['endpoint.', 'Paused receivers'],
  ['backup', 'Backups'],
  ['restore', 'Restores'],
  ['master-key.', 'Master key'],
  ['regions.', 'Regions'],
  ['migrate', 'Migrations'],
]

export function AuditPage() {
  const [{ action, actor, from, to, cursor }, setParams] = useSearchParams()
  const filter = { ...(action && { action }), ...(actor && { actor }), ...(from && { from }), ...(to && { to }) }
  const query = { ...filter, ...(cursor && { cursor }) }
  const change = (changes: Record<string, string>) => setParams({ ...changes, cursor: undefined })
  const log = useRead('listAudit', { query }, cursor === undefined ? { liveMs: 5000 } : {})
  return (
    <Page
      title="Audit log"
      about="Changes made in the console, through the admin API and by commands: who, what, when and from which address."
      actions={<ExportLinks list="listAudit" input={{ query: filter }} />}
    >
      <search
        aria-label="Filters"
        className="grid grid-cols-2 gap-3 rounded-xl border border-line bg-panel p-4 lg:grid-cols-4"
      >
        <SelectField label="Subject" value={action ?? ''} options={subjects} onText={(action) => change({ action })} />
        <TextField
          label="User"
          type="search"
          placeholder="ada@example.com"
          value={actor ?? ''}
          onText={(actor) => change({ actor })}
        />
        <TextField label="From" type="date" value={from ?? ''} max={to} onText={(from) => change({ from })} />
        <TextField label="To" type="date" value={to ?? ''} min={from} onText={(to) => change({ to })} />
      </search>
      <Loaded query={log}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title="No entries">Changes in the console, through the admin API and by commands appear here.</Empty>
          ) : (
            <>
              <Entries rows={items} />
              <Pager next={next} />
            </>
          )
        }
      </Loaded>
    </Page>
  )
}

function Entries({ rows }: { rows: Entry[] }) {
  return (
    <Table
      caption="Audit log"
      rows={rows}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Time', cell: ({ at }) => <span className="whitespace-nowrap">{toDateTime(at)}</span> },
        { title: 'Action', cell: ({ action }) => <code className="font-mono text-xs font-medium">{action}</code> },
        { title: 'Target', cell: (entry) => <Target entry={entry} /> },
        { title: 'Detail', cell: (entry) => <Detail entry={entry} /> },
        {
          title: 'User',
          cell: ({ actor }) => (
            <span className="inline-block min-w-32">
              <LongText>{actor}</LongText>
            </span>
          ),
        },
        { title: 'Address', isExtra: true, cell: ({ address }) => address ?? '' },
      ]}
    />
  )
}

function Target({ entry: { target, account_name } }: { entry: Entry }) {
  if (target === null && account_name === null) return null
  const isId = /^[0-9a-f-]{36}$|^[0-9a-f]{64}$/.test(target ?? '')
  return (
    <span className="flex flex-col">
      {account_name !== null && <LongText>{account_name}</LongText>}
      {target !== null && (isId ? <LongText isCode>{target}</LongText> : <LongText>{target}</LongText>)}
    </span>
  )
}

/** Hides a detail that repeats the name of the account. */
function Detail({ entry: { detail, account_name } }: { entry: Entry }) {
  return detail === null || detail === account_name ? null : <LongText>{toReadable(detail)}</LongText>
}

/** Formats a detail that is a form in JSON. */
function toReadable(detail: string): string {
  if (!detail.startsWith('{')) return detail
  try {
    const fields = Object.entries(JSON.parse(detail) as Record<string, unknown>)
    return fields.map(([name, value]) => `${name.replaceAll('_', ' ')}: ${value ?? 'none'}`).join(', ')
  } catch {
    return detail
  }
}
