import type { Notice } from '@assay/contract/admin'
import { useChange, useRead } from '../../api/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { toDateTime } from '../../ui/format.ts'
import { ErrorMessage } from '../../ui/states.tsx'

/** Tells an owner that operators gave somebody access to the account, until the owner confirms it. */
export function Notices() {
  const notices = useRead('listNotices')
  const confirm = useChange('confirmNotices')
  const [newest] = notices.data ?? []
  if (newest === undefined) return null
  return (
    <section aria-label="Notices" className="flex flex-col gap-3 rounded-xl border border-line bg-error-soft p-4">
      <h2 className="font-semibold">Access to this account by operators</h2>
      <ul className="flex list-disc flex-col gap-1 pl-5">
        {notices.data?.map((notice) => (
          <li key={notice.id}>
            {toDateTime(notice.at)}: {toText(notice)}
          </li>
        ))}
      </ul>
      <ErrorMessage error={confirm.error} />
      <div>
        <Button isBusy={confirm.isPending} onClick={() => confirm.mutate({ body: { until: newest.at } })}>
          I have read this
        </Button>
      </div>
    </section>
  )
}

function toText({ kind, actor, target }: Notice): string {
  if (kind === 'password-reset') return `${actor} set a new password with a link from an operator.`
  return `The operator ${actor} created an invitation for an owner${target === null ? '' : `, ${target}`}.`
}
