import type { ReactNode } from 'react'
import type { ApiError } from '../api/call.ts'
import { Spinner } from './button.tsx'

/** What went wrong in words, with the trace id to look it up by. */
export function Failure({ error, isOld = false }: { error: ApiError | Error | null | undefined; isOld?: boolean }) {
  if (error === null || error === undefined) return null
  const traceId = 'traceId' in error ? error.traceId : undefined
  return (
    <div role="alert" className="rounded-lg border border-threat/30 bg-threat-soft px-4 py-3">
      <p className="font-medium text-threat [overflow-wrap:anywhere]">{error.message}</p>
      {isOld && <p className="mt-1 text-soft">What you see below is from before. It is looked up again by itself.</p>}
      {traceId !== undefined && <p className="mt-1 font-mono text-xs break-all text-soft">trace {traceId}</p>}
    </div>
  )
}

export function Notice({ children }: { children: ReactNode }) {
  return <div className="rounded-lg border border-line bg-brand-soft px-4 py-3">{children}</div>
}

/** Nothing there yet: say what would be, and how to get it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-2 rounded-xl border border-dashed border-line px-6 py-10 text-center">
      <p className="text-base font-medium">{title}</p>
      {children !== undefined && <div className="max-w-md text-soft">{children}</div>}
    </div>
  )
}

/** Shows a reading in each of its states: on its way, failed, there. */
export function Reading<T>({
  of,
  children,
}: {
  of: { data: T | undefined; error: ApiError | null }
  children: (data: T) => ReactNode
}) {
  if (of.data !== undefined) {
    return (
      <>
        {/* What was read before is still of use, as long as nobody takes it for the state of now. */}
        <Failure error={of.error} isOld />
        {children(of.data)}
      </>
    )
  }
  if (of.error !== null) return <Failure error={of.error} />
  return (
    <p role="status" className="flex items-center gap-2 py-8 text-soft">
      <Spinner /> Loading
    </p>
  )
}
