import { type ReactNode, useEffect } from 'react'

/** The layout of the pages that need no session. */
export function EntryFrame({ title, about, children }: { title: string; about?: ReactNode; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Assay`
  }, [title])
  return (
    <main className="flex min-h-dvh flex-col items-center justify-center gap-6 px-4 py-10">
      <span className="flex items-center gap-3">
        <img src="/console/icon.svg" alt="" className="size-9" />
        <span className="text-xl font-semibold tracking-tight">Assay</span>
      </span>
      <div className="w-full max-w-sm rounded-xl border border-line bg-panel p-6 shadow-xs">
        <h1 className="text-lg font-semibold">{title}</h1>
        {about !== undefined && <p className="mt-1 text-soft">{about}</p>}
        <div className="mt-5">{children}</div>
      </div>
    </main>
  )
}
