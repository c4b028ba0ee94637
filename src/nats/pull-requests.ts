import { isJsonObject, type Json, type JsonObject, member, textAt } from '../lib/json.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { createDocumentStore } from './jetstream/document-store.ts';
import { BUCKETS } from './jetstream/names.ts';

/** What a gateway last saw in Git of one ApprovalRequest, or of one revocation. */
export interface PullRequestState {
  /** `Revocation`: of an Approval that takes a tool out of service. */
  readonly kind: 'Request' | 'Revocation';
  readonly namespace: string;
  /** Name and UID of the ApprovalRequest, or of the Approval. */
  readonly request: string;
  readonly requestUid: string;
  /** The connection, branch and folder. */
  readonly place: string;
  /** `Failed`: it could not be opened or read; the next round tries again. `Absent`: the branch has no approval that a revocation is for. */
  readonly state: 'Open' | 'Merged' | 'Closed' | 'Failed' | 'Absent';
  /** RFC 3339: the last look at the server. */
  readonly checkedAt: string;
  readonly number?: number;
  readonly url?: string;
  /** Why it failed. Printable, without secrets. */
  readonly message?: string;
  /** RFC 3339: no look before this time, because the server asks for it. */
  readonly retryAt?: string;
}

/** All pull requests of the release, and the gateway that works on them. */
export interface PullRequestDocument {
  readonly holder: string;
  /** RFC 3339: after this another gateway may take over. */
  readonly until: string;
  readonly requests: readonly PullRequestState[];
}

/** The one document of the release. Methods throw TEMPER_BUS_*. */
export interface PullRequestStore {
  /** Revision 0 and no document before the first write. */
  read(): Promise<{ document: PullRequestDocument | undefined; revision: number }>;
  /** Returns the new revision; undefined when another gateway wrote meanwhile. */
  write(document: PullRequestDocument, revision: number): Promise<number | undefined>;
}

/** Two tokens, so that no provider of the bucket has the same key. */
const KEY = 'state.pull-requests';
/** The document stays below the largest message of a stream. */
export const MAX_PULL_REQUESTS = 300;

export function createPullRequestStore(connection: JetStreamConnection): PullRequestStore {
  const documents = createDocumentStore(connection, BUCKETS.health);
  return {
    async read() {
      const found = await documents.get(KEY);
      return { document: parseDocument(found?.value), revision: found?.revision ?? 0 };
    },
    async write(document, revision) {
      const requests = document.requests.slice(0, MAX_PULL_REQUESTS).map((state): JsonObject => ({ ...state }));
      return documents.write(KEY, { ...document, requests }, revision);
    },
  };
}

function parseDocument(value: Json | undefined): PullRequestDocument | undefined {
  const requests = member(value, 'requests');
  if (!isJsonObject(value) || !Array.isArray(requests)) return undefined;
  return {
    holder: textAt(value, ['holder']),
    until: textAt(value, ['until']),
    requests: requests.flatMap((request) => parseState(request) ?? []),
  };
}

const STATES: readonly PullRequestState['state'][] = ['Open', 'Merged', 'Closed', 'Failed', 'Absent'];

function parseState(value: Json): PullRequestState | undefined {
  const state = STATES.find((known) => known === textAt(value, ['state']));
  if (state === undefined) return undefined;
  const number = member(value, 'number');
  const [url, message, retryAt] = [textAt(value, ['url']), textAt(value, ['message']), textAt(value, ['retryAt'])];
  return {
    kind: textAt(value, ['kind']) === 'Revocation' ? 'Revocation' : 'Request',
    place: textAt(value, ['place']),
    namespace: textAt(value, ['namespace']),
    request: textAt(value, ['request']),
    requestUid: textAt(value, ['requestUid']),
    state,
    checkedAt: textAt(value, ['checkedAt']),
    ...(typeof number === 'number' ? { number } : {}),
    ...(url === '' ? {} : { url }),
    ...(message === '' ? {} : { message }),
    ...(Number.isNaN(Date.parse(retryAt)) ? {} : { retryAt }),
  };
}
