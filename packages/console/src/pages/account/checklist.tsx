import type { Overview } from '@assay/contract/admin'
import { Link } from '@tanstack/react-router'
import { Code } from '../../ui/copy.tsx'
import { Card } from '../../ui/page.tsx'

type Step = { title: string; isDone: boolean; about: string; to: string; link: string; code: string }

/** The steps of a new account up to its first webhook. Hidden once all steps are done. */
export function Checklist({ done }: { done: Overview['checklist'] }) {
  const steps = toSteps(done, location.origin)
  if (steps.every(({ isDone }) => isDone)) return null
  const next = steps.findIndex(({ isDone }) => !isDone)
  return (
    <Card title="Get started">
      <ol className="flex flex-col gap-4">
        {steps.map((step, n) => (
          <li key={step.title} className="grid grid-cols-[1.75rem_minmax(0,1fr)] gap-3">
            <StepMark number={n + 1} isDone={step.isDone} />
            <div className="flex flex-col gap-2">
              <div className="flex flex-wrap items-baseline justify-between gap-x-4">
                <span className={`font-medium ${step.isDone ? 'text-soft' : ''}`}>
                  {step.title}
                  {step.isDone && <span className="sr-only"> (done)</span>}
                </span>
                <Link to={step.to} className="font-medium text-brand hover:underline">
                  {step.link}
                </Link>
              </div>
              {n === next && (
                <>
                  <p className="text-soft">{step.about}</p>
                  <Code label="In a shell" text={step.code} />
                </>
              )}
            </div>
          </li>
        ))}
      </ol>
    </Card>
  )
}

function StepMark({ number, isDone }: { number: number; isDone: boolean }) {
  return (
    <span
      aria-hidden="true"
      className={`flex size-7 items-center justify-center rounded-full text-xs font-semibold ${isDone ? 'bg-clean-soft text-clean' : 'bg-brand-soft text-brand'}`}
    >
      {isDone ? '✓' : number}
    </span>
  )
}

const toSteps = (done: Overview['checklist'], origin: string): Step[] => [
  {
    title: 'Use an API key',
    isDone: done.has_key,
    about: 'Applications send an API key with every request. Create one and test it.',
    to: '/keys',
    link: 'API keys',
    code: `export ASSAY_API_KEY='assay_…'\ncurl -H "X-API-Key: $ASSAY_API_KEY" ${origin}/v1/ping`,
  },
  {
    title: 'Scan a file',
    isDone: done.has_scanned,
    about: 'A scan returns a verdict: clean, threat or error. Accept only clean content.',
    to: '/scan',
    link: 'Scan here',
    code: `curl -H "X-API-Key: $ASSAY_API_KEY" -F file=@upload.zip \\\n  ${origin}/v1/malware/scan/file`,
  },
  {
    title: 'Receive a webhook',
    isDone: done.has_webhook,
    about: 'Submit a file with a callback URL. The service sends the result to it by POST, signed with your secret.',
    to: '/webhooks',
    link: 'Webhooks',
    code: `curl -H "X-API-Key: $ASSAY_API_KEY" -F callback_url=https://example.com/webhooks/assay \\\n  -F file=@upload.zip ${origin}/v1/malware/submit/file`,
  },
]
