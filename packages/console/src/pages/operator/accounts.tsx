import type { AccountView } from '@assay/contract/admin'
import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { Button } from '../../ui/button.tsx'
import { Meter } from '../../ui/charts.tsx'
import { TextField } from '../../ui/field.tsx'
import { isUnlimited, toNumber } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { RowButton, Table } from '../../ui/table.tsx'
import { AccountDrawer, AccountState } from './account-drawer.tsx'
import { CreateAccount } from './create-account.tsx'

export function AccountsPage() {
  const accounts = useRead('listAccounts', {}, { liveMs: 10_000 })
  const [isCreating, setCreating] = useState(false)
  const [{ account: openId, search = '' }, setParams] = useSearchParams()
  const open = accounts.data?.find(({ id }) => id === openId)
  const create = (
    <Button variant="primary" onClick={() => setCreating(true)}>
      New account
    </Button>
  )
  return (
    <Page title="Accounts" about="Accounts with their plans, credits and rate limits." actions={create}>
      <Loaded query={accounts}>
        {(rows) => (
          <>
            <div className="max-w-80">
              <TextField
                label="Search"
                type="search"
                placeholder="Name, plan or ID"
                value={search}
                onText={(text) => setParams({ search: text })}
              />
            </div>
            <Accounts rows={filterAccounts(rows, search)} onOpen={(account) => setParams({ account })} />
          </>
        )}
      </Loaded>
      {isCreating && <CreateAccount onClose={() => setCreating(false)} />}
      {open !== undefined && (
        <AccountDrawer key={open.id} account={open} onClose={() => setParams({ account: undefined })} />
      )}
    </Page>
  )
}

function filterAccounts(rows: AccountView[], search: string): AccountView[] {
  const searchText = search.trim().toLowerCase()
  return rows.filter(({ name, plan, id }) => [name, plan, id].some((text) => text.toLowerCase().includes(searchText)))
}

function Accounts({ rows, onOpen }: { rows: AccountView[]; onOpen: (id: string) => void }) {
  if (rows.length === 0) return <Empty title="No matching accounts">Search for another name, plan or ID.</Empty>
  return (
    <Table
      caption="Accounts"
      rows={rows}
      keyOf={({ id }) => id}
      onOpen={({ id }) => onOpen(id)}
      columns={[
        { title: 'Name', cell: ({ name }) => <RowButton>{name}</RowButton> },
        { title: 'State', cell: (row) => <AccountState account={row} /> },
        { title: 'Plan', cell: ({ plan }) => <LongText>{plan}</LongText> },
        { title: 'Credits left', cell: (row) => <Credits account={row} /> },
        { title: 'Rate limit', isExtra: true, cell: ({ rate }) => <code className="font-mono text-xs">{rate}</code> },
      ]}
    />
  )
}

function Credits({ account }: { account: AccountView }) {
  const { credit_remaining, credit_limit } = account
  if (isUnlimited(credit_limit)) return 'Unlimited'
  return (
    <span className="flex w-32 max-w-full flex-col gap-1 tabular-nums">
      <span className="whitespace-nowrap">
        {toNumber(credit_remaining)} <span className="text-faint">of {toNumber(credit_limit)}</span>
      </span>
      <Meter label="Credits left" value={credit_remaining} max={credit_limit} />
    </span>
  )
}
