import { FairQueue } from '../../../lib/async/fair-queue.ts';
import type { PackLimits } from '../../../git/pack/pack-reader.ts';
import type { CallContext } from '../../../tools/contract.ts';
import type { RemoteWorkspace } from '../../../tools/host/remote-workspace.ts';
import { CHECKOUT_LIMITS, type CheckoutLimits, CLONE_LIMITS, MAX_CLONE_BYTES } from './checked-clone.ts';
import { type FetchToWrite, writeFetch } from '../remote/write-fetch.ts';
import { type CommitToPack, packCommit } from '../remote/pack-commit.ts';
import { CLONE_REQUEST, cloneRequest, FETCH_REQUEST, fetchRequest } from './clone-request.ts';
import { PACK_REQUEST, packIn, packRequest } from './pack-request.ts';
import { type CloneToWrite, writeClone, type WriteCloneDeps } from './write-clone.ts';

interface CloneLimits {
  /** Of one answer of the server. */
  readonly answerBytes: number;
  readonly pack: PackLimits;
  readonly checkout: CheckoutLimits;
}

/** Where the repositories of the workspace are: what is read for them is checked before it is written there, and what they push is packed there. */
export interface CloneLocation {
  readonly limits: CloneLimits;
  /** Of each of the two answers of a fetch, whose objects may be in memory together. */
  readonly fetchLimits: CloneLimits;
  /** Clones whose objects are in memory at the same time wait for each other. Sessions take turns. */
  inTurn<T>(session: string, work: () => Promise<T>): Promise<T>;
  /** Throws as `writeClone`. */
  write(clone: CloneToWrite, context: CallContext): Promise<void>;
  /** Throws as `writeFetch`. */
  fetch(fetched: FetchToWrite, context: CallContext): Promise<void>;
  /** Of at most `limits.answerBytes`. Throws as `packCommit`. */
  pack(order: CommitToPack, context: CallContext): Promise<Buffer>;
}

const MEBIBYTE = 1_048_576;
const LOCAL_LIMITS: CloneLimits = { answerBytes: MAX_CLONE_BYTES, pack: CLONE_LIMITS, checkout: CHECKOUT_LIMITS };

/** The agent container of a pod has 192 MiB, and needs the most of it itself. */
function podLimits(unit: number): CloneLimits {
  return {
    answerBytes: 3 * unit,
    pack: { objects: 10_000, objectBytes: 3 * unit, totalBytes: 12 * unit },
    checkout: { ...CHECKOUT_LIMITS, entries: 5_000, bytes: 12 * unit },
  };
}

/** Also of what a pod pushes. */
export const POD_LIMITS: CloneLimits = podLimits(MEBIBYTE);
export const POD_FETCH_LIMITS: CloneLimits = podLimits(MEBIBYTE / 2);

/** The machine of a user. */
export function localCloneLocation(deps: WriteCloneDeps): CloneLocation {
  return {
    limits: LOCAL_LIMITS,
    fetchLimits: LOCAL_LIMITS,
    inTurn: (_session, work) => work(),
    write: (clone, context) => writeClone(clone, deps, context),
    fetch: (fetched, context) => writeFetch(fetched, deps, context),
    pack: (order, context) => packCommit(order, { ...deps, maxBytes: MAX_CLONE_BYTES }, context),
  };
}

/** A pod: the agent container checks, the sandbox container writes. One for all sessions of the pod. */
export function podCloneLocation(sandbox: Pick<RemoteWorkspace, 'callTool'>): CloneLocation {
  const turns = new FairQueue();
  return {
    limits: POD_LIMITS,
    fetchLimits: POD_FETCH_LIMITS,
    inTurn: (session, work) => turns.run(session, work),
    async write(clone, context) {
      await sandbox.callTool(CLONE_REQUEST, cloneRequest(clone, context), context.op);
    },
    async fetch(fetched, context) {
      await sandbox.callTool(FETCH_REQUEST, fetchRequest(fetched, context), context.op);
    },
    async pack(order, context) {
      return packIn(await sandbox.callTool(PACK_REQUEST, packRequest(order, context), context.op));
    },
  };
}
