import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from './api/call.ts'
import { makeRouter } from './router.tsx'
import './style.css'

function makeQueryClient(): QueryClient {
  // The first request that fails with 401 asks the person to sign in, on whatever page they are.
  const onError = (error: Error) => {
    if (error instanceof ApiError && error.status === 401) client.setQueryData(['getSession'], null)
  }
  const client = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 2000,
        // Retry only failed connections: the service would answer an error response with the same error.
        retry: (count, error) => count < 2 && error instanceof ApiError && error.status === 0,
        // The service may be on the local network while the browser considers itself offline.
        networkMode: 'always',
      },
      mutations: { networkMode: 'always' },
    },
  })
  return client
}

const root = document.getElementById('root')
if (root === null) throw new Error('The page has no element with the id root')
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={makeQueryClient()}>
      <RouterProvider router={makeRouter()} />
    </QueryClientProvider>
  </StrictMode>,
)
