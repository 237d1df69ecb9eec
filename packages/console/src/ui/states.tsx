import { type ReactNode, useEffect, useState } from 'react'
import type { ApiError } from '../api/call.ts'

/** An error with its trace id. `isStale`: the data below it is from an earlier query. */
export function ErrorMessage({
  error,
  isStale = false,
}: {
  error: ApiError | Error | null | undefined
  isStale?: boolean
}) {
  if (error === null || error === undefined) return null
  // A person who waits for a rate limit has nothing to report.
  const traceId = 'traceId' in error && error.status !== 429 ? error.traceId : undefined
  return (
    <div role="alert" className="rounded-lg border border-threat/30 bg-threat-soft px-4 py-3">
      <p className="font-medium text-threat [overflow-wrap:anywhere]">{error.message}</p>
      {'retryAfterSeconds' in error && error.retryAfterSeconds !== undefined && (
        <RetryTimer key={error.receivedAt} until={error.receivedAt + error.retryAfterSeconds * 1000} />
      )}
      {isStale && <p className="mt-1 text-soft">The data below may be out of date. It refreshes automatically.</p>}
      {traceId !== undefined && <p className="mt-1 font-mono text-xs break-all text-soft">trace id {traceId}</p>}
    </div>
  )
}

/** Counts down to the time from which the service takes another attempt. Screen readers read it only when asked. */
function RetryTimer({ until }: { until: number }) {
  const [now, setNow] = useState(Date.now)
  const seconds = Math.max(0, Math.ceil((until - now) / 1000))
  useEffect(() => {
    if (seconds === 0) return
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [seconds])
  if (seconds === 0) return <p className="mt-1 text-soft">You can try again now.</p>
  const minutes = Math.floor(seconds / 60)
  return (
    <p role="timer" className="mt-1 text-soft tabular-nums">
      Try again in {minutes}:{String(seconds % 60).padStart(2, '0')}
    </p>
  )
}

const noticeTones = { information: 'border-line bg-brand-soft', warning: 'border-error/40 bg-error-soft' }

/** `warning` is for what works and needs attention. */
export function Notice({ tone = 'information', children }: { tone?: keyof typeof noticeTones; children: ReactNode }) {
  return <div className={`rounded-lg border px-4 py-3 ${noticeTones[tone]}`}>{children}</div>
}

/** Placeholder for an empty list: says what appears here, and how. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-2 rounded-xl border border-dashed border-line px-6 py-10 text-center">
      <p className="text-base font-medium">{title}</p>
      {children !== undefined && <div className="max-w-md text-soft">{children}</div>}
    </div>
  )
}

/** Shows a query in each of its states: loading, failed, or with data. */
export function Loaded<T>({
  query,
  children,
}: {
  query: { data: T | undefined; error: ApiError | null }
  children: (data: T) => ReactNode
}) {
  if (query.data !== undefined) {
    return (
      <>
        <ErrorMessage error={query.error} isStale />
        {children(query.data)}
      </>
    )
  }
  if (query.error !== null) return <ErrorMessage error={query.error} />
  return <Skeleton />
}

/** Grey bars in place of the content, so that the page does not jump when it arrives. */
function Skeleton() {
  return (
    <div role="status" className="flex flex-col gap-3 py-2 motion-safe:animate-pulse">
      <span className="sr-only">Loading…</span>
      {['w-1/3', 'w-full', 'w-11/12', 'w-5/6', 'w-2/3'].map((width) => (
        <span key={width} className={`h-6 rounded-lg bg-sunk ${width}`} />
      ))}
    </div>
  )
}
