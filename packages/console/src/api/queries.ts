import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { ApiError } from './call.ts'

export function makeQueries(): QueryClient {
  // Whoever asks first after the session has ended learns it for all: the way in is shown.
  const onError = (error: Error) => {
    if (error instanceof ApiError && error.status === 401) client.setQueryData(['getSession'], null)
  }
  const client = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 2000,
        // What was refused will be refused again; only a service that does not answer is worth asking twice.
        retry: (count, error) => count < 2 && error instanceof ApiError && error.status === 0,
        // A service in one's own network answers while the browser believes itself offline.
        networkMode: 'always',
      },
      mutations: { networkMode: 'always' },
    },
  })
  return client
}
