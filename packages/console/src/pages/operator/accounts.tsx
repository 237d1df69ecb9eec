import type { AccountView } from '@assay/contract/admin'
import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { useAddress } from '../../api/use-address.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Meter } from '../../ui/charts.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'
import { isUnlimited, toNumber } from '../../ui/format.ts'
import { Long } from '../../ui/long.tsx'
import { Page } from '../../ui/page.tsx'
import { RowButton, Table } from '../../ui/table.tsx'
import { AccountDrawer } from './account-drawer.tsx'
import { CreateAccount } from './create-account.tsx'

export function AccountsPage() {
  const accounts = useRead('listAccounts', {}, { liveMs: 10_000 })
  const [isCreating, setCreating] = useState(false)
  const [{ account: openId, find = '' }, setAddress] = useAddress()
  const open = accounts.data?.find(({ id }) => id === openId)
  const create = (
    <Button look="main" onClick={() => setCreating(true)}>
      New account
    </Button>
  )
  return (
    <Page title="Accounts" about="Who may scan, how much and how fast." actions={create}>
      <Reading of={accounts}>
        {(rows) => (
          <>
            <div className="max-w-80">
              <TextField
                label="Find"
                type="search"
                placeholder="Name, plan or id"
                value={find}
                onText={(text) => setAddress({ find: text })}
              />
            </div>
            <Accounts rows={pick(rows, find)} onOpen={(account) => setAddress({ account })} />
          </>
        )}
      </Reading>
      {isCreating && <CreateAccount onClose={() => setCreating(false)} />}
      {open !== undefined && (
        <AccountDrawer key={open.id} account={open} onClose={() => setAddress({ account: undefined })} />
      )}
    </Page>
  )
}

function pick(rows: AccountView[], find: string): AccountView[] {
  const wanted = find.trim().toLowerCase()
  return rows.filter(({ name, plan, id }) => [name, plan, id].some((text) => text.toLowerCase().includes(wanted)))
}

function Accounts({ rows, onOpen }: { rows: AccountView[]; onOpen: (id: string) => void }) {
  if (rows.length === 0) return <Empty title="No account is like that">Look for another name, plan or id.</Empty>
  return (
    <Table
      caption="Accounts"
      rows={rows}
      keyOf={({ id }) => id}
      onOpen={({ id }) => onOpen(id)}
      columns={[
        { title: 'Name', cell: ({ name }) => <RowButton>{name}</RowButton> },
        { title: 'State', cell: (row) => <AccountState account={row} /> },
        { title: 'Plan', cell: ({ plan }) => <Long>{plan}</Long> },
        { title: 'Credits left', cell: (row) => <Credits account={row} /> },
        { title: 'Rate', isExtra: true, cell: ({ rate }) => <code className="font-mono text-xs">{rate}</code> },
      ]}
    />
  )
}

function Credits({ account }: { account: AccountView }) {
  const { credit_remaining, credit_limit } = account
  if (isUnlimited(credit_limit)) return 'no limit'
  return (
    <span className="flex w-32 max-w-full flex-col gap-1 tabular-nums">
      <span className="whitespace-nowrap">
        {toNumber(credit_remaining)} <span className="text-faint">of {toNumber(credit_limit)}</span>
      </span>
      <Meter label="Credits left" value={credit_remaining} max={credit_limit} />
    </span>
  )
}

export function AccountState({ account }: { account: AccountView }) {
  if (account.suspended_at !== null) return <Badge tone="threat">suspended</Badge>
  const isOver = account.expires_at !== null && new Date(account.expires_at) < new Date()
  return <Badge tone={isOver ? 'error' : 'clean'}>{isOver ? 'expired' : 'active'}</Badge>
}
