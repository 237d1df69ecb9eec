import type { AccountView } from '@assay/contract/admin'
import { useChange, useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Button } from '../../ui/button.tsx'
import { Secret } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Empty, Failure, Reading } from '../../ui/feedback.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { toDateTime, toDay, toNumber } from '../../ui/format.ts'
import { Facts } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { AccountState } from './accounts.tsx'

/** One account: change it, give it credits, see what became of them. */
export function AccountDrawer({ account, onClose }: { account: AccountView; onClose: () => void }) {
  const change = useChange('updateAccount')
  const invite = useChange('inviteOwner')
  const params = { id: account.id }
  const isSuspended = account.suspended_at !== null
  return (
    <Dialog title={account.name} onClose={onClose} side>
      <div className="flex flex-col gap-8">
        <Facts
          rows={[
            ['State', <AccountState key="state" account={account} />],
            [
              'Id',
              <code key="id" className="font-mono text-xs break-all">
                {account.id}
              </code>,
            ],
            [
              'Credits',
              `${toNumber(account.credit_remaining)} of ${toNumber(account.credit_limit)} left until ${toDay(account.period_end)}`,
            ],
            ['Rate', account.rate],
          ]}
        />
        <div className="flex flex-wrap gap-2">
          <Button isBusy={invite.isPending} onClick={() => invite.mutate({ params })}>
            Invite an owner
          </Button>
          <Button
            look={isSuspended ? 'plain' : 'danger'}
            isBusy={change.isPending}
            onClick={() => change.mutate({ params, body: { suspended: !isSuspended } })}
          >
            {isSuspended ? 'Let in again' : 'Suspend'}
          </Button>
        </div>
        {invite.data !== undefined && (
          <Secret label="Send this link to the owner. It works once." text={invite.data.url} />
        )}
        <Failure error={change.error ?? invite.error} />
        <PlanForm account={account} />
        <GrantForm account={account} />
        <Ledger accountId={account.id} />
      </div>
    </Dialog>
  )
}

function PlanForm({ account }: { account: AccountView }) {
  const plans = useRead('listPlans')
  const form = useForm('updateAccount', { name: account.name, plan: account.plan }, { params: { id: account.id } })
  return (
    <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
      <h3 className="font-semibold">Name and plan</h3>
      <TextField
        label="Name"
        value={form.values.name ?? ''}
        error={form.errorOf('name')}
        onText={(name) => form.set({ name })}
      />
      <SelectField
        label="Plan"
        hint="A new plan counts at once."
        value={form.values.plan ?? ''}
        error={form.errorOf('plan')}
        options={(plans.data ?? [{ name: account.plan }]).map(({ name }) => [name, name])}
        onText={(plan) => form.set({ plan })}
      />
      <Failure error={form.error} />
      <div>
        <Button type="submit" isBusy={form.isBusy}>
          Save
        </Button>
      </div>
    </form>
  )
}

function GrantForm({ account }: { account: AccountView }) {
  const form = useForm(
    'grantCredits',
    { amount: 1000, note: '' },
    { params: { id: account.id }, onDone: () => form.reset() },
  )
  return (
    <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
      <h3 className="font-semibold">Grant credits</h3>
      <TextField
        label="Credits"
        hint="For the current period."
        inputMode="numeric"
        value={form.values.amount}
        error={form.errorOf('amount')}
        onText={(text) => form.set({ amount: Number(text) })}
      />
      <TextField
        label="Why"
        hint="It stands in the ledger."
        value={form.values.note}
        error={form.errorOf('note')}
        onText={(note) => form.set({ note })}
      />
      <Failure error={form.error} />
      <div>
        <Button type="submit" look="main" isBusy={form.isBusy}>
          Grant
        </Button>
      </div>
    </form>
  )
}

function Ledger({ accountId }: { accountId: string }) {
  const ledger = useRead('listLedger', { params: { id: accountId } })
  return (
    <section className="flex flex-col gap-3">
      <h3 className="font-semibold">Ledger</h3>
      <Reading of={ledger}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No entries yet" />
          ) : (
            <Table
              caption="Ledger"
              rows={rows.slice(0, 50)}
              keyOf={({ id }) => id}
              columns={[
                { title: 'When', cell: ({ at }) => toDateTime(at) },
                { title: 'What', cell: ({ kind, note }) => (note === null ? kind : `${kind}: ${note}`) },
                {
                  title: 'Credits',
                  isNumber: true,
                  cell: ({ amount }) => (amount > 0 ? `+${toNumber(amount)}` : toNumber(amount)),
                },
                { title: 'Balance', isNumber: true, cell: ({ balance }) => toNumber(balance) },
              ]}
            />
          )
        }
      </Reading>
    </section>
  )
}
