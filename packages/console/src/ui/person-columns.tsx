import { Badge } from './badge.tsx'
import type { Column } from './table.tsx'
import { Age } from './time.tsx'

type Person = { has_totp: boolean; last_seen_at: string | null }

/** The columns about sign-ins, the same for the members of an account and for operators. */
export const personColumns: Column<Person>[] = [
  {
    title: 'Authenticator app',
    cell: ({ has_totp }) => <Badge tone={has_totp ? 'clean' : 'plain'}>{has_totp ? 'on' : 'off'}</Badge>,
    isExtra: true,
  },
  {
    title: 'Last seen',
    cell: ({ last_seen_at }) => <Age at={last_seen_at} otherwise="Never" />,
    isExtra: true,
  },
]
