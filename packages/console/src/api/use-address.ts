import { useNavigate, useSearch } from '@tanstack/react-router'

type Search = Record<string, string | undefined>

/** What a page shows stands in its address: it can be kept, sent to somebody, and gone back from. */
export function useAddress(): [Search, (more: Search, how?: { asNewPage?: boolean }) => void] {
  const navigate = useNavigate()
  const search: Record<string, unknown> = useSearch({ strict: false })
  const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '')
  return [
    Object.fromEntries(given.map(([name, value]) => [name, String(value)])),
    (more, { asNewPage = false } = {}) => {
      const search = (before: Search) => dropEmpty({ ...before, ...more })
      navigate({ to: '.', search, replace: !asNewPage } as Parameters<typeof navigate>[0])
    },
  ]
}

const dropEmpty = (search: Search): Search =>
  Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined && value !== ''))
