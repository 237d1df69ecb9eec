import type { Status } from '@assay/contract/admin'
import { Badge } from '../../ui/badge.tsx'
import { toNumber } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Table } from '../../ui/table.tsx'

const protocols = { clamd: 'clamd', icap: 'ICAP' }
const tlsTexts = { off: 'Off', on: 'On', 'client certificates': 'On, with client certificates' }

/** Listeners of this node for clients of clamd and ICAP. Empty without any. */
export function Listeners({ listeners }: Pick<Status, 'listeners'>) {
  if (listeners.length === 0) return null
  return (
    <Table
      title="Listeners"
      caption="Listeners"
      rows={listeners}
      keyOf={({ name }) => name}
      columns={[
        { title: 'Listener', cell: ({ name }) => <span className="font-medium">{name}</span> },
        { title: 'Protocol', cell: ({ kind }) => protocols[kind] },
        { title: 'Address', cell: ({ address }) => <LongText isCode>{address}</LongText> },
        { title: 'TLS', cell: ({ tls }) => tlsTexts[tls] },
        {
          title: 'Account',
          cell: ({ account }) =>
            account === null ? <Badge tone="threat">! API key not valid</Badge> : <LongText>{account.name}</LongText>,
        },
        {
          title: 'Connections',
          isNumber: true,
          cell: ({ connections, max_connections }) => `${toNumber(connections)} of ${toNumber(max_connections)}`,
        },
        { title: 'Refused', isNumber: true, cell: ({ rejected }) => toNumber(rejected) },
      ]}
    />
  )
}
