import { attachmentForms } from './attachment-forms.ts'
import { cmsForms, encryptedCmsForms } from './cms-forms.ts'
import { diskForms } from './disk-forms.ts'
import { encryptedArchiveForms } from './encrypted-archive-forms.ts'
import { encryptedForms } from './encrypted-forms.ts'
import type { Form } from './form.ts'
import { installerForms } from './installer-forms.ts'
import { mailForms } from './mail-forms.ts'
import { oddMailForms } from './odd-mail-forms.ts'
import { encryptedOfficeForms, officeForms } from './office-forms.ts'
import { encryptedOpenpgpForms, openpgpForms } from './openpgp-forms.ts'
import { encryptedPdfForms, pdfForms } from './pdf-forms.ts'
import { textForms } from './text-forms.ts'

/** Forms of mail, documents, encrypted and signed content, file systems and installers. */
export const contentForms: Form[] = [
  ...mailForms,
  ...oddMailForms,
  ...attachmentForms,
  ...pdfForms,
  ...diskForms,
  ...installerForms,
  ...textForms,
  ...officeForms,
  ...openpgpForms,
  ...cmsForms,
  ...encryptedOpenpgpForms,
  ...encryptedCmsForms,
  ...encryptedForms,
  ...encryptedArchiveForms,
  ...encryptedPdfForms,
  ...encryptedOfficeForms,
]
