import pornography from '../../../../../docs/test-images/pornography.png'
import sexy from '../../../../../docs/test-images/sexy.png'

export type Sample = { label: string; kind: 'malware' | 'nsfw_image'; load: () => Promise<File> }

/** In two halves, put together when it is asked for: no scanner shall take this page for what it makes. */
const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-', 'ANTIVIRUS-TEST-FILE!$H+H*']

/** Harmless, and always with the verdict that they are for. */
export const samples: Sample[] = [
  { label: 'EICAR test file', kind: 'malware', load: async () => new File(eicar, 'eicar.com') },
  {
    label: 'Clean text file',
    kind: 'malware',
    load: async () => new File(['Nothing to see here.\n'], 'clean.txt', { type: 'text/plain' }),
  },
  { label: 'Test image: pornography', kind: 'nsfw_image', load: () => fetchImage(pornography, 'pornography.png') },
  { label: 'Test image: sexy', kind: 'nsfw_image', load: () => fetchImage(sexy, 'sexy.png') },
]

async function fetchImage(url: string, name: string): Promise<File> {
  const answer = await fetch(url)
  return new File([await answer.blob()], name, { type: 'image/png' })
}
