import type { AccountView } from '@assay/contract/admin'
import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { Button } from '../../ui/button.tsx'
import { Meter } from '../../ui/charts.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { isUnlimited, noLimit, toNumber, toRate } from '../../ui/format.ts'
import { LongText } from '../../ui/long-text.tsx'
import { Page } from '../../ui/page.tsx'
import { SearchField, useSearchMatch } from '../../ui/search.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { RowButton, Table } from '../../ui/table.tsx'
import { AccountDrawer, AccountState } from './account-drawer.tsx'
import { CreateAccount } from './create-account.tsx'

export function AccountsPage() {
  const accounts = useRead('listAccounts', {}, { liveMs: 10_000 })
  const [isCreating, setCreating] = useState(false)
  const [{ account: openId }, setParams] = useSearchParams()
  const matches = useSearchMatch()
  const open = accounts.data?.find(({ id }) => id === openId)
  const create = (
    <Button variant="primary" onClick={() => setCreating(true)}>
      New account
    </Button>
  )
  return (
    <Page
      title="Accounts"
      about="Accounts with their plans, credits and rate limits."
      actions={
        <>
          <ExportLinks list="listAccounts" />
          {create}
        </>
      }
    >
      <Loaded query={accounts}>
        {(rows) => (
          <>
            <SearchField placeholder="Name, plan or ID" />
            <Accounts
              rows={rows.filter(({ name, plan, id }) => matches(name, plan, id))}
              onOpen={(account) => setParams({ account })}
            />
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
        { title: 'Rate limit', isExtra: true, cell: ({ rate }) => toRate(rate) },
      ]}
    />
  )
}

function Credits({ account }: { account: AccountView }) {
  const { credit_remaining, credit_limit } = account
  if (isUnlimited(credit_limit)) return noLimit
  return (
    <span className="flex w-32 max-w-full flex-col gap-1 tabular-nums">
      <span className="whitespace-nowrap">
        {toNumber(credit_remaining)} <span className="text-faint">of {toNumber(credit_limit)}</span>
      </span>
      <Meter label="Credits left" value={credit_remaining} max={credit_limit} />
    </span>
  )
}
