/** Where the two kinds of scan live, and what they are called in the interface. */
export const roots = { malware: '/v1/malware', nsfwImages: '/v1/nsfw/images' } as const

export type Root = (typeof roots)[keyof typeof roots]

export const paths = {
  account: '/v1/me',
  ping: '/v1/ping',
  scanFile: (root: Root) => `${root}/scan/file`,
  scanUrl: (root: Root) => `${root}/scan/url`,
  submitFile: (root: Root) => `${root}/submit/file`,
  submitUrl: (root: Root) => `${root}/submit/url`,
  result: (root: Root, id: string) => `${root}/${encodeURIComponent(id)}`,
}
