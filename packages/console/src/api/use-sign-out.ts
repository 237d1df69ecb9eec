import type { Session } from '@assay/contract/admin'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ApiError, call } from './call.ts'

/**
 * Ends this session, or all sessions. Loading the next page drops all data of the person from the memory of the browser.
 * After single sign-on it is the page of the issuer, whose session would sign the next person in without a question.
 */
export function useSignOut(route: 'signOut' | 'signOutEverywhere') {
  const client = useQueryClient()
  return useMutation<void, ApiError>({
    mutationFn: async () => {
      const next = client.getQueryData<Session>(['getSession'])?.sso_sign_out_url ?? '/console/sign-in'
      await call(route)
      location.assign(next)
    },
  })
}
