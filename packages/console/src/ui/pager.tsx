import { useSearchParams } from '../api/use-search-params.ts'
import { Button } from './button.tsx'

/** Buttons to the next page of a list and back to its first page. The parameter `cursor` holds the current page. */
export function Pager({ next, label = 'Older entries' }: { next: string | null; label?: string }) {
  const [{ cursor }, setParams] = useSearchParams()
  return (
    <div className="flex flex-wrap items-center justify-center gap-3 empty:hidden">
      {cursor !== undefined && (
        <Button variant="ghost" onClick={() => setParams({ cursor: undefined })}>
          First page
        </Button>
      )}
      {next !== null && (
        <Button variant="ghost" onClick={() => setParams({ cursor: next }, { isNewPage: true })}>
          {label}
        </Button>
      )}
    </div>
  )
}
