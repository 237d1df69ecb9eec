import type { AccountView } from '@assay/contract/admin'
import { useState } from 'react'
import { useChange } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Secret } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Failure } from '../../ui/feedback.tsx'
import { isUnlimited, toDay, toNumber } from '../../ui/format.ts'
import { Facts } from '../../ui/page.tsx'
import { GrantForm, PlanForm } from './account-forms.tsx'
import { AccountLedger } from './account-ledger.tsx'
import { AccountState } from './accounts.tsx'

/** One account: change it, give it credits, see what became of them. */
export function AccountDrawer({ account, onClose }: { account: AccountView; onClose: () => void }) {
  return (
    <Dialog title={account.name} onClose={onClose} side>
      <div className="flex flex-col gap-6">
        <Facts rows={toFacts(account)} />
        <Doors account={account} />
        <PlanForm account={account} />
        <GrantForm account={account} />
        <AccountLedger accountId={account.id} />
      </div>
    </Dialog>
  )
}

function toFacts(account: AccountView): [string, React.ReactNode][] {
  const { id, credit_remaining, credit_limit, period_end, rate, created_at, expires_at } = account
  const credits = isUnlimited(credit_limit)
    ? 'no limit'
    : `${toNumber(credit_remaining)} of ${toNumber(credit_limit)} left until ${toDay(period_end)}`
  return [
    ['State', <AccountState key="state" account={account} />],
    ['Credits', credits],
    ['Rate', rate],
    ['Created', toDay(created_at)],
    ...(expires_at === null ? [] : ([['Ends', toDay(expires_at)]] as [string, string][])),
    [
      'Id',
      <code key="id" className="font-mono text-xs break-all">
        {id}
      </code>,
    ],
  ]
}

/** Who gets in: a link for an owner, or nobody any more. */
function Doors({ account }: { account: AccountView }) {
  const [isSuspending, setSuspending] = useState(false)
  const change = useChange('updateAccount', { onDone: () => setSuspending(false) })
  const invite = useChange('inviteOwner')
  const params = { id: account.id }
  const isSuspended = account.suspended_at !== null
  const suspend = (suspended: boolean) => change.mutate({ params, body: { suspended } })
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap gap-2">
        <Button isBusy={invite.isPending} onClick={() => invite.mutate({ params })}>
          Invite an owner
        </Button>
        {isSuspended ? (
          <Button isBusy={change.isPending} onClick={() => suspend(false)}>
            Let in again
          </Button>
        ) : (
          <Button onClick={() => setSuspending(true)}>Suspend</Button>
        )}
      </div>
      {invite.data !== undefined && (
        <Secret
          label={`Send this link to the owner. It works once, until ${toDay(invite.data.expires_at)}.`}
          text={invite.data.url}
        />
      )}
      <Failure error={invite.error ?? (isSuspending ? null : change.error)} />
      {isSuspending && (
        <Confirm
          title={`Suspend ${account.name}`}
          action="Suspend"
          of={change}
          onConfirm={() => suspend(true)}
          onClose={() => setSuspending(false)}
        >
          Its keys are refused at once. Nothing is deleted, and it can be let in again.
        </Confirm>
      )}
    </div>
  )
}
