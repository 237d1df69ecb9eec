import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from './api/call.ts'
import { makeRouter } from './router.tsx'
import './style.css'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2000,
      // What was refused will be refused again; only a service that does not answer is worth asking twice.
      retry: (count, error) => count < 2 && error instanceof ApiError && error.status === 0,
    },
  },
})
const root = document.getElementById('root')
if (root === null) throw new Error('The page has no root')
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={makeRouter()} />
    </QueryClientProvider>
  </StrictMode>,
)
