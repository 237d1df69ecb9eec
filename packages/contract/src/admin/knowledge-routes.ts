import * as knowledge from './knowledge.ts'
import { get, put, remove } from './route.ts'

/** Routes for hash lists and the revisions of all results. */
export const operatorKnowledgeRoutes = {
  listHashLists: get('/operator/hash-lists', 'operator', 'List the lists of known hashes', {
    answer: knowledge.HashLists,
  }),
  removeHashList: remove('/operator/hash-lists/{name}', 'operator', 'Remove an imported list of known hashes'),
  listRevisions: get('/operator/revisions', 'operator', 'List revisions of results, newest first', {
    query: knowledge.RevisionFilter,
    answer: knowledge.RevisionPage,
  }),
}

/** Routes for the revisions of the results of an account. */
export const accountKnowledgeRoutes = {
  listAccountRevisions: get('/revisions', 'account', 'List revisions of results of the account, newest first', {
    query: knowledge.RevisionFilter,
    answer: knowledge.RevisionPage,
  }),
  getRevisionWebhook: get('/revisions/webhook', 'account', 'Show where webhooks about revisions are sent', {
    answer: knowledge.RevisionWebhook,
  }),
  setRevisionWebhook: put('/revisions/webhook', 'owner', 'Choose where webhooks about revisions are sent', {
    body: knowledge.RevisionWebhook,
    answer: knowledge.RevisionWebhook,
  }),
}
