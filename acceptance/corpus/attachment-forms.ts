import { writeAppleFile, writeBinHex, writeMacBinary } from './apple-writer.ts'
import { plainText } from './bytes.ts'
import type { Form } from './form.ts'
import { attach, textPart, toBase64Lines, writeMail } from './mail-writer.ts'
import { formsOf, zipFile } from './samples.ts'
import { writeTnef, writeTnefMessage, writeTnefValue } from './tnef-writer.ts'

const attachmentForm = formsOf({
  family: 'mail',
  needs: [],
  extractors: ['python content', 'munpack', 'tnef', 'uudeview', 'munpack and others', 'unzip and tnef'],
})

const appleSingle = 0x51600
const appleDouble = 0x51607
const dataFork = 1
const resourceFork = 2

const inMail = (bytes: Buffer, type: string) =>
  writeMail({
    parts: [
      textPart,
      { headers: [`Content-Type: ${type}`, 'Content-Transfer-Encoding: base64'], body: toBase64Lines(bytes) },
    ],
  })

/** Containers that only mail programs write. */
export const attachmentForms: Form[] = [
  attachmentForm('attachments of Outlook (TNEF)', 'ambiguous', {
    'winmail.dat': (payload) => writeTnef(payload),
    'winmail.eml': (payload) => inMail(writeTnef(payload), 'application/ms-tnef; name="winmail.dat"'),
    'message.dat': (payload) => writeTnefMessage(payload),
    'winmail.zip': (payload, workdir) => zipFile(workdir, 'winmail.dat', writeTnef(payload)),
  }),
  attachmentForm('attachments of Outlook (TNEF) among properties', 'opened', {
    'value.dat': (payload) => writeTnefValue(payload),
    'value.eml': (payload) => inMail(writeTnefValue(payload), 'application/ms-tnef; name="winmail.dat"'),
  }),
  attachmentForm('AppleSingle and AppleDouble', 'ambiguous', {
    'single.as': (payload) => writeAppleFile(appleSingle, dataFork, payload),
    'single.eml': (payload) => inMail(writeAppleFile(appleSingle, dataFork, payload), 'application/applefile'),
    'double.eml': (payload) => {
      const header = writeAppleFile(appleDouble, resourceFork, Buffer.from('resource'))
      const applefile = {
        headers: ['Content-Type: application/applefile', 'Content-Transfer-Encoding: base64'],
        body: toBase64Lines(header),
      }
      const parts = [applefile, attach(toBase64Lines(payload), 'base64')]
      return writeMail({ parts, contentType: 'multipart/appledouble; boundary=frontier' })
    },
  }),
  attachmentForm('BinHex and MacBinary', 'ambiguous', {
    'payload.hqx': (payload) => writeBinHex(payload),
    'payload.bin': (payload) => writeMacBinary(payload),
    'hqx.eml': (payload) => writeMail({ parts: [textPart, attach(writeBinHex(payload).toString(), '7bit')] }),
    'typed-hqx.eml': (payload) =>
      writeMail({
        parts: [{ headers: ['Content-Type: application/mac-binhex40'], body: writeBinHex(payload).toString() }],
      }),
    'spelled.hqx': (payload) =>
      Buffer.from(writeBinHex(payload).toString('latin1').replace('BinHex 4.0', 'binhex'), 'latin1'),
    'damaged-sentence.hqx': (payload) =>
      Buffer.from(writeBinHex(payload).toString('latin1').replace('con', 'c\x81n'), 'latin1'),
    'no-sentence.hqx': (payload) =>
      Buffer.from(
        writeBinHex(payload)
          .toString()
          .replace(/^.*\n\n/, ''),
      ),
    'behind-text.hqx': (payload) => Buffer.concat([plainText, writeBinHex(payload)]),
    'two.hqx': (payload) => Buffer.concat([writeBinHex(plainText), writeBinHex(payload)]),
    'bin.eml': (payload) => inMail(writeMacBinary(payload), 'application/macbinary'),
  }),
]
