import type { AdminRouteName } from '@assay/contract/admin'
import { keepPreviousData, type QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type Answer, ApiError, call, type Input } from './call.ts'

type Interval<N extends AdminRouteName> = number | ((data: Answer<N> | undefined) => number | false)

/** Queries a route, again every `liveMs` if given. While a new query runs, the previous data stays visible. */
export function useRead<N extends AdminRouteName>(
  name: N,
  input: Input<N> = {},
  options: { liveMs?: Interval<N>; enabled?: boolean } = {},
) {
  const { liveMs } = options
  return useQuery<Answer<N>, ApiError>({
    queryKey: [name, input],
    queryFn: ({ signal }) => call(name, input, signal),
    placeholderData: keepPreviousData,
    ...(liveMs === undefined
      ? {}
      : { refetchInterval: ({ state }) => (typeof liveMs === 'number' ? liveMs : liveMs(state.data)) }),
    ...(options.enabled === undefined ? {} : { enabled: options.enabled }),
  })
}

/** Called with the answer of a change, before the queries of the page are refreshed. */
export type OnDone<N extends AdminRouteName> = (answer: Answer<N>) => void | Promise<void>

/** Calls a route that changes something, and then refreshes all queries of the page. */
export function useChange<N extends AdminRouteName>(name: N, options: { onDone?: OnDone<N> } = {}) {
  const client = useQueryClient()
  return useMutation<Answer<N>, ApiError, Input<N>>({
    mutationFn: (input) => call(name, input),
    onSuccess: async (answer) => {
      await options.onDone?.(answer)
      await refresh(client)
    },
  })
}

export const refresh = (client: QueryClient) => client.invalidateQueries()

/** The current session; null if nobody is signed in. */
export function useSession() {
  return useQuery({
    queryKey: ['getSession'],
    queryFn: async () => {
      try {
        return await call('getSession')
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) return null
        throw error
      }
    },
    staleTime: 60_000,
  })
}
