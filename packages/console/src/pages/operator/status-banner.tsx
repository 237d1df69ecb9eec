import type { Status } from '@assay/contract/admin'

type State = Status['status']

const titles: Record<State, string> = {
  ok: 'All systems operational',
  degraded: 'Degraded: the service works, but needs attention',
  down: 'The service is not operational',
}
const frames: Record<State, string> = {
  ok: 'border-clean/40 bg-clean-soft',
  degraded: 'border-error/40 bg-error-soft',
  down: 'border-threat/40 bg-threat-soft',
}
const colours: Record<State, string> = { ok: 'text-clean', degraded: 'text-error', down: 'text-threat' }
const symbols: Record<State, string> = {
  ok: 'M6 10.5l2.8 2.8L14.5 7',
  degraded: 'M10 5.5v5.5M10 14.2v.1',
  down: 'M7 7l6 6M13 7l-6 6',
}

/** The overall state of the service, the problems, and the healthy parts. */
export function StatusBanner({ status }: { status: Status }) {
  const problems = status.parts.filter((part) => part.status !== 'ok')
  const healthy = status.parts.filter((part) => part.status === 'ok')
  return (
    <section aria-label="State of the service" className={`rounded-xl border p-4 sm:p-5 ${frames[status.status]}`}>
      <div role="status" className="flex items-center gap-3">
        <StateIcon state={status.status} />
        <p className="text-base font-semibold">{titles[status.status]}</p>
      </div>
      {problems.length > 0 && (
        <ul className="mt-3 flex list-disc flex-col gap-1 pl-13">
          {problems.map(({ detail }) => (
            <li key={detail}>{detail}</li>
          ))}
        </ul>
      )}
      {healthy.length > 0 && (
        <ul aria-label="Healthy" className="mt-2 flex flex-wrap gap-x-5 gap-y-1 pl-11">
          {healthy.map(({ name }) => (
            <li key={name} className="flex items-center gap-1.5 text-soft">
              <span className="text-clean" aria-hidden="true">
                ✓
              </span>
              {name}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function StateIcon({ state }: { state: State }) {
  return (
    <svg viewBox="0 0 20 20" className={`size-8 shrink-0 ${colours[state]}`} aria-hidden="true">
      <circle cx="10" cy="10" r="10" fill="currentColor" />
      <path
        d={symbols[state]}
        fill="none"
        className="stroke-panel"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  )
}
