import { test } from 'node:test'
import type { Subject } from './operation.ts'

const control = 'control characters'
const badNames: [why: string, name: string][] = [
  ['empty', ''],
  ['blank', ' '],
  ['blank', '\u00a0\u3000 '],
  ['too long', 'a'.repeat(256)],
  ['too long', '😀'.repeat(256)],
  ['far too long', 'a'.repeat(60_000)],
  [control, 'a\u0000'],
  [control, 'a\u001bb'],
  [control, 'a\tb'],
  [control, '\u007f'],
  [control, 'a\u0085'],
]
const goodNames = ['a', 'a'.repeat(255), '😀'.repeat(255), '../x', '..\\x', 'a b', ' a ', 'مرحبا', '"quoted"', 'null']

/** Values for JSON only, because a form can carry nothing but text. */
const badValues: unknown[] = [1, true, {}, [], ['a'], '\ud800', 'a\udc00b', 'a\nb', 'a\r\nb']

const badImageNames = ['a.exe', 'a.jpg.exe', 'a.svg', 'photo.jpg\u200b', 'a.png/../b.pdf', 'png.jpgx']
const goodImageNames = 'a.jpg a.JPG a.jpeg a.png a.gif a.webp a.exe.png dir.exe/a no-extension'.split(' ')

/** Rules for `file_name`, the label that a caller may give to the content. */
export function testFileNameRules(subject: Subject) {
  const { operation, sendFields } = subject
  const kind = 'kind' in operation ? operation.kind : undefined

  test('422: a file name that is empty, blank, too long or has control characters is refused', async () => {
    for (const [why, name] of badNames) {
      const answer = await sendFields({ file_name: name })
      await subject.assertInvalid(answer, ['file_name'], `${why}: ${JSON.stringify(name)}`)
    }
  })

  test('any other name is a label and accepted, up to 255 characters', async () => {
    for (const name of goodNames) await subject.assertAccepted(await sendFields({ file_name: name }), name)
  })

  if (operation.does === 'url') {
    test('422: a file name in JSON that is no string, or broken Unicode, is refused', async () => {
      for (const name of badValues) {
        await subject.assertInvalid(await sendFields({ file_name: name }), ['file_name'], JSON.stringify(name))
      }
      await subject.assertAccepted(await sendFields({ file_name: null }), 'null means not given')
    })
  }

  if (kind === 'nsfw_image') {
    test('422: a file name with another extension than an image’s is refused', async () => {
      for (const name of badImageNames) {
        await subject.assertInvalid(await sendFields({ file_name: name }), ['file_name'], name)
      }
      for (const name of goodImageNames) await subject.assertAccepted(await sendFields({ file_name: name }), name)
    })
  } else {
    test('a malware scan takes a name with any extension', async () => {
      for (const name of badImageNames) await subject.assertAccepted(await sendFields({ file_name: name }), name)
    })
  }
}
