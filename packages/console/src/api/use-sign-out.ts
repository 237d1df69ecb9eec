import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ApiError, call } from './call.ts'

/** Ends this session, or all sessions, and clears the cached data. */
export function useSignOut(route: 'signOut' | 'signOutEverywhere') {
  const client = useQueryClient()
  const navigate = useNavigate()
  return useMutation<void, ApiError>({
    mutationFn: async () => {
      await call(route)
    },
    onSuccess: async () => {
      await navigate({ to: '/sign-in' })
      client.clear()
    },
  })
}
