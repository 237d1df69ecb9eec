import type { AccountView } from '@assay/contract/admin'
import { useState } from 'react'
import { useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Reading } from '../../ui/feedback.tsx'
import { toDay, toNumber } from '../../ui/format.ts'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { AccountDrawer } from './account-drawer.tsx'
import { CreateAccount } from './create-account.tsx'

export function AccountsPage() {
  const accounts = useRead('listAccounts', {}, { liveMs: 10_000 })
  const [isCreating, setCreating] = useState(false)
  const [openId, setOpenId] = useState<string>()
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
          <Table
            caption="Accounts"
            rows={rows}
            keyOf={({ id }) => id}
            onOpen={({ id }) => setOpenId(id)}
            columns={[
              {
                title: 'Name',
                cell: (row) => (
                  <button
                    type="button"
                    className="text-left font-medium hover:underline"
                    onClick={() => setOpenId(row.id)}
                  >
                    {row.name}
                  </button>
                ),
              },
              { title: 'State', cell: (row) => <AccountState account={row} /> },
              { title: 'Plan', cell: ({ plan }) => plan },
              {
                title: 'Credits left',
                isNumber: true,
                cell: (row) => `${toNumber(row.credit_remaining)} of ${toNumber(row.credit_limit)}`,
              },
              { title: 'Rate', isExtra: true, cell: ({ rate }) => <code className="font-mono text-xs">{rate}</code> },
              { title: 'Created', isExtra: true, cell: ({ created_at }) => toDay(created_at) },
            ]}
          />
        )}
      </Reading>
      {isCreating && <CreateAccount onClose={() => setCreating(false)} />}
      {open !== undefined && <AccountDrawer key={open.id} account={open} onClose={() => setOpenId(undefined)} />}
    </Page>
  )
}

export function AccountState({ account }: { account: AccountView }) {
  if (account.suspended_at !== null) return <Badge tone="threat">suspended</Badge>
  const isOver = account.expires_at !== null && new Date(account.expires_at) < new Date()
  return <Badge tone={isOver ? 'error' : 'clean'}>{isOver ? 'expired' : 'active'}</Badge>
}
