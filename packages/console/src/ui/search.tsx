import { useSearchParams } from '../api/use-search-params.ts'
import { TextField } from './field.tsx'

/** A field that filters a list which is loaded whole. The parameter `search` holds its text. */
export function SearchField({ placeholder }: { placeholder: string }) {
  const [{ search = '' }, setParams] = useSearchParams()
  return (
    <div className="max-w-80">
      <TextField
        label="Search"
        type="search"
        placeholder={placeholder}
        value={search}
        onText={(text) => setParams({ search: text })}
      />
    </div>
  )
}

/** Returns whether one of the texts contains what the person searches for. */
export function useSearchMatch(): (...texts: (string | null)[]) => boolean {
  const [{ search = '' }] = useSearchParams()
  const wanted = search.trim().toLowerCase()
  return (...texts) => texts.some((text) => text?.toLowerCase().includes(wanted))
}
