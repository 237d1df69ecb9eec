import type { Session } from '@assay/contract/admin'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ApiError, call } from './call.ts'

/**
 * Ends this session, or all sessions, and clears the cached data. After single sign-on, the page of the issuer follows,
 * because its session would sign the next person in without a question.
 */
export function useSignOut(route: 'signOut' | 'signOutEverywhere') {
  const client = useQueryClient()
  const navigate = useNavigate()
  return useMutation<void, ApiError>({
    mutationFn: async () => {
      await call(route)
    },
    onSuccess: async () => {
      const issuerPage = client.getQueryData<Session>(['getSession'])?.sso_sign_out_url ?? null
      if (issuerPage !== null) return location.assign(issuerPage)
      await navigate({ to: '/sign-in' })
      client.clear()
    },
  })
}
