import type { AccountView } from '@assay/contract/admin'
import { useState } from 'react'
import { useChange } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Secret } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { isUnlimited, noLimit, toDay, toNumber, toRate } from '../../ui/format.ts'
import { Facts } from '../../ui/page.tsx'
import { ErrorMessage } from '../../ui/states.tsx'
import { DownloadsCard } from '../downloads/downloads-card.tsx'
import { GrantForm, PlanForm } from './account-forms.tsx'
import { AccountLedger } from './account-ledger.tsx'

/** One account with its settings, credits and ledger. */
export function AccountDrawer({ account, onClose }: { account: AccountView; onClose: () => void }) {
  return (
    <Dialog title={account.name} onClose={onClose} side>
      <div className="flex flex-col gap-6">
        <Facts rows={toFacts(account)} />
        <Access account={account} />
        <PlanForm account={account} />
        <GrantForm account={account} />
        <DownloadsCard accountId={account.id} />
        <AccountLedger accountId={account.id} />
      </div>
    </Dialog>
  )
}

function toFacts(account: AccountView): [string, React.ReactNode][] {
  const { id, credit_remaining, credit_limit, period_end, rate, created_at, expires_at } = account
  const credits = isUnlimited(credit_limit)
    ? noLimit
    : `${toNumber(credit_remaining)} of ${toNumber(credit_limit)} left until ${toDay(period_end)}`
  return [
    ['State', <AccountState key="state" account={account} />],
    ...(account.suspended_reason === null ? [] : ([['Reason', account.suspended_reason]] as [string, string][])),
    ['Credits', credits],
    ['Rate limit', toRate(rate)],
    ['Created', toDay(created_at)],
    ...(expires_at === null ? [] : ([['Expires', toDay(expires_at)]] as [string, string][])),
    [
      'ID',
      <code key="id" className="font-mono text-xs break-all">
        {id}
      </code>,
    ],
  ]
}

/** Invites an owner, and suspends or reactivates the account. */
function Access({ account }: { account: AccountView }) {
  const [isSuspending, setSuspending] = useState(false)
  const [reason, setReason] = useState('')
  const [email, setEmail] = useState('')
  const change = useChange('updateAccount', { onDone: () => setSuspending(false) })
  const invite = useChange('inviteOwner')
  const params = { id: account.id }
  const isSuspended = account.suspended_at !== null
  const suspend = (suspended: boolean) =>
    change.mutate({
      params,
      body: { suspended, ...(suspended && reason.trim() !== '' && { suspended_reason: reason }) },
    })
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap gap-2">
        <Button isBusy={invite.isPending} onClick={() => invite.mutate({ params, body: { email } })}>
          Invite an owner
        </Button>
        {isSuspended ? (
          <Button isBusy={change.isPending} onClick={() => suspend(false)}>
            Reactivate
          </Button>
        ) : (
          <Button onClick={() => setSuspending(true)}>Suspend</Button>
        )}
      </div>
      <TextField
        label="Email of the new owner"
        type="email"
        hint="The invitation works for this address only. The owners of the account are told about the invitation."
        value={email}
        onText={setEmail}
      />
      {invite.data !== undefined && (
        <Secret
          label={`Send this link to the new owner. It works once, until ${toDay(invite.data.expires_at)}.`}
          text={invite.data.url}
        />
      )}
      <ErrorMessage error={invite.error ?? (isSuspending ? null : change.error)} />
      {isSuspending && (
        <Confirm
          title={`Suspend ${account.name}`}
          action="Suspend"
          mutation={change}
          onConfirm={() => suspend(true)}
          onClose={() => setSuspending(false)}
        >
          The service rejects the API keys of the account immediately. Nothing is deleted, and you can reactivate the
          account.
          <TextField
            label="Reason (optional)"
            hint="Members of the account read it in the console."
            value={reason}
            onText={setReason}
          />
        </Confirm>
      )}
    </div>
  )
}

export function AccountState({ account }: { account: AccountView }) {
  if (account.suspended_at !== null) return <Badge tone="threat">suspended</Badge>
  const isOver = account.expires_at !== null && new Date(account.expires_at) < new Date()
  return <Badge tone={isOver ? 'error' : 'clean'}>{isOver ? 'expired' : 'active'}</Badge>
}
