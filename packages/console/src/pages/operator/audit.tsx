import type { Answer } from '../../api/call.ts'
import { useRead } from '../../api/hooks.ts'
import { useAddress } from '../../api/use-address.ts'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { SelectField } from '../../ui/field.tsx'
import { toDateTime } from '../../ui/format.ts'
import { Long } from '../../ui/long.tsx'
import { Page } from '../../ui/page.tsx'
import { More, Table } from '../../ui/table.tsx'

type Entry = Answer<'listAudit'>['items'][number]

/** What an action is called begins with what it is about. */
const subjects: [begin: string, label: string][] = [
  ['', 'Everything'],
  ['account.', 'Accounts'],
  ['credits.', 'Credits'],
  ['plan.', 'Plans'],
  ['key.', 'API keys'],
  ['member.', 'Members'],
  ['session.', 'Sign-in and sign-out'],
  ['password.', 'Passwords'],
  ['totp.', 'Authenticator apps'],
  ['list.', 'Allow and block'],
  ['signatures.', 'Signatures'],
  ['job.', 'Jobs'],
  ['webhook', 'Webhooks'],
  ['delivery.', 'Deliveries'],
  ['host.', 'Receivers by host'],
  ['backup', 'Backups'],
]

export function AuditPage() {
  const [{ action, cursor }, setAddress] = useAddress()
  const query = { ...(action && { action }), ...(cursor && { cursor }) }
  const log = useRead('listAudit', { query }, cursor === undefined ? { liveMs: 5000 } : {})
  return (
    <Page title="Audit log" about="Who changed what, and from where. Nothing is ever taken out of it.">
      <div className="max-w-72">
        <SelectField
          label="About"
          value={action ?? ''}
          options={subjects}
          onText={(text) => setAddress({ action: text, cursor: undefined })}
        />
      </div>
      <Reading of={log}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title="Nothing of this kind yet">Every change made here or by a script is noted by itself.</Empty>
          ) : (
            <>
              <Entries rows={items} />
              <More next={next} onMore={(cursor) => setAddress({ cursor }, { asNewPage: true })} />
            </>
          )
        }
      </Reading>
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
        { title: 'What', cell: ({ action }) => <code className="font-mono text-xs font-medium">{action}</code> },
        { title: 'On', cell: (entry) => <Target entry={entry} /> },
        { title: 'Detail', cell: (entry) => <Detail entry={entry} /> },
        { title: 'Who', cell: ({ actor }) => <Long>{actor}</Long> },
        { title: 'When', cell: ({ at }) => <span className="whitespace-nowrap">{toDateTime(at)}</span> },
        { title: 'From', isExtra: true, cell: ({ address }) => address ?? '' },
      ]}
    />
  )
}

function Target({ entry: { target, account_name } }: { entry: Entry }) {
  if (target === null && account_name === null) return null
  const isId = /^[0-9a-f-]{36}$|^[0-9a-f]{64}$/.test(target ?? '')
  return (
    <span className="flex flex-col">
      {account_name !== null && <Long>{account_name}</Long>}
      {target !== null && (isId ? <Long isCode>{target}</Long> : <Long>{target}</Long>)}
    </span>
  )
}

/** The name of a new account is its detail, too, and stands there already. */
function Detail({ entry: { detail, account_name } }: { entry: Entry }) {
  return detail === null || detail === account_name ? null : <Long>{toWords(detail)}</Long>
}

/** Some details are the form that was sent. */
function toWords(detail: string): string {
  if (!detail.startsWith('{')) return detail
  try {
    const fields = Object.entries(JSON.parse(detail) as Record<string, unknown>)
    return fields.map(([name, value]) => `${name.replaceAll('_', ' ')}: ${value ?? 'none'}`).join(', ')
  } catch {
    return detail
  }
}
