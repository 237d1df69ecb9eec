import { useNavigate, useSearch } from '@tanstack/react-router'

type Params = Record<string, string | undefined>

/** The query parameters of the page, which hold its filters, so that a view can be bookmarked, shared and gone back to. */
export function useSearchParams(): [Params, (changes: Params, options?: { isNewPage?: boolean }) => void] {
  const navigate = useNavigate()
  const search: Record<string, unknown> = useSearch({ strict: false })
  return [
    Object.fromEntries(Object.entries(dropEmpty(search)).map(([name, value]) => [name, String(value)])),
    (changes, { isNewPage = false } = {}) => {
      const search = (before: Params) => dropEmpty({ ...before, ...changes })
      navigate({ to: '.', search, replace: !isNewPage } as Parameters<typeof navigate>[0])
    },
  ]
}

const dropEmpty = <T>(params: Record<string, T>): Record<string, T> =>
  Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined && value !== ''))
