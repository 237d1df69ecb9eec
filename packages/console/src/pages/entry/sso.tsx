import type { FinishSso } from '@assay/contract/admin'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useRouter } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import type { Static } from 'typebox'
import { type Answer, type ApiError, call } from '../../api/call.ts'
import { closeSsoWindow, takeReturnPath } from '../../api/single-sign-on.ts'
import { Spinner } from '../../ui/button.tsx'
import { ErrorMessage } from '../../ui/states.tsx'
import { EntryFrame } from './entry-frame.tsx'

/** The page to which the issuer sends the browser. It passes the answer of the issuer on to the service. */
export function SsoPage() {
  const client = useQueryClient()
  const router = useRouter()
  const finish = useMutation<Answer<'finishSso'>, ApiError, Static<typeof FinishSso>>({
    mutationFn: (body) => call('finishSso', { body }),
    onSuccess: ({ state }) => {
      if (closeSsoWindow()) return
      // Drop cached data: another user may have been signed in before.
      client.clear()
      router.history.replace(state === 'linked' ? '/console/you' : takeReturnPath())
    },
  })
  const answer = useRef<Static<typeof FinishSso> | undefined>(readAnswer(location.search))
  const { mutate } = finish
  useEffect(() => {
    if (answer.current === undefined) return
    const given = answer.current
    answer.current = undefined
    // The code must not stay in the address, where it would be copied or bookmarked.
    history.replaceState(history.state, '', location.pathname)
    mutate(given)
  }, [mutate])
  if (finish.error === null) {
    return (
      <EntryFrame title="Single sign-on">
        <p role="status" className="flex items-center gap-2 text-soft">
          {finish.isSuccess ? 'You are signed in. You can close this window.' : <Spinner />}
          {!finish.isSuccess && 'Signing you in…'}
        </p>
      </EntryFrame>
    )
  }
  return (
    <EntryFrame title="Single sign-on failed">
      <ErrorMessage error={finish.error} />
      <p className="mt-4">
        <Link to="/sign-in" className="font-medium text-brand hover:underline">
          Back to the sign-in page
        </Link>
      </p>
    </EntryFrame>
  )
}

/** The parameters of the issuer. Without `state` the service refuses them, with a sentence for the person. */
function readAnswer(search: string): Static<typeof FinishSso> {
  const given = new URLSearchParams(search)
  const names = ['code', 'iss', 'error'] as const
  const found = names.map((name) => [name, given.get(name)] as const).filter(([, value]) => value !== null)
  return { state: given.get('state') || 'none', ...Object.fromEntries(found) }
}
