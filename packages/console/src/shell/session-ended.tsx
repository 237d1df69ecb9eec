import type { Session } from '@assay/contract/admin'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { call } from '../api/call.ts'
import { refresh } from '../api/hooks.ts'
import { onSignedInElsewhere, useStartSsoInWindow } from '../api/single-sign-on.ts'
import { SignInChoices } from '../pages/entry/sign-in-choices.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { ErrorMessage } from '../ui/states.tsx'

/**
 * Asks for the password over the page when the session has ended, so that a form that the person filled stays. After
 * another person signs in, the key of the shell drops the page with all its forms.
 */
export function SessionEnded({ ended }: { ended: Session }) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const sso = useStartSsoInWindow()
  const onSignedIn = async () => {
    const session = await restoreAccount(ended, await call('getSession'))
    if (toOwner(session) !== toOwner(ended)) {
      await navigate({ to: '/' })
      // Data of the other person must not stay. The session itself is replaced below, because the router observes it.
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'getSession' })
    }
    client.setQueryData(['getSession'], session)
  }
  const restore = useMutation({ mutationFn: onSignedIn, onSuccess: () => refresh(client) })
  useEffect(() => onSignedInElsewhere(restore.mutate), [restore.mutate])
  return (
    <Dialog title="Your session has ended" onClose={undefined}>
      <p className="mb-5 text-soft">
        Sign in again to go on. What you entered on this page stays, unless another person signs in.
      </p>
      <SignInChoices email={ended.member.email} sso={sso} onSignedIn={onSignedIn} />
      <ErrorMessage error={restore.error} />
    </Dialog>
  )
}

/** The person and the account that a page and its forms belong to. */
export const toOwner = ({ member, account }: Session) => `${member.id} ${account?.id}`

/** A new session works in the first account of the person; the page may belong to another of them. */
async function restoreAccount(ended: Session, session: Session): Promise<Session> {
  const { account } = ended
  if (account === null || session.member.id !== ended.member.id || session.account?.id === account.id) return session
  if (!session.accounts.some(({ id }) => id === account.id)) return session
  await call('chooseAccount', { body: { account_id: account.id } })
  return call('getSession')
}
