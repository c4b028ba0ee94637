import type { Json } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, subjects, token } from '../jetstream/names.ts';
import { parseJsonBytes, purge } from '../jetstream/stream-reader.ts';
import { NotificationListener, notify } from '../notify/notifications.ts';
import { createChunkedValues } from './chunked-values.ts';

/**
 * The work of verifier pods and the outputs that they sent, by the UID of the pod: a pod has at most one work, and the gateway gives it
 * only its own. Methods throw TEMPER_BUS_*.
 */
export interface Verifications {
  /** Gives the pod its work. False when the pod has one already; that one stays. */
  assign(podUid: string, work: Json): Promise<boolean>;
  /** The work of the pod, as JSON text. */
  work(podUid: string): Promise<Buffer | undefined>;
  /** Waits for work of the pod until the signal aborts. */
  waitForWork(podUid: string, signal: AbortSignal): Promise<Buffer | undefined>;
  /** Stores the outputs that the pod sent; the first ones stay. */
  putOutputs(podUid: string, outputs: Json): Promise<void>;
  /** Undefined until the pod has sent its outputs. */
  outputs(podUid: string): Promise<Json | undefined>;
  /** Deletes the work and the outputs of the pod. */
  remove(podUid: string): Promise<void>;
}

/** A notification may be lost. */
const LOOK_INTERVAL_MS = 3_000;

export function createVerifications(connection: JetStreamConnection): Verifications {
  const values = createChunkedValues(connection, BUCKETS.verifications);
  const workKey = (podUid: string): string => `${token(podUid)}.work`;
  const outputsKey = (podUid: string): string => `${token(podUid)}.outputs`;
  return {
    async assign(podUid, work) {
      const assigned = await values.put(workKey(podUid), Buffer.from(JSON.stringify(work)));
      notify(connection, subjects.notifyVerifier(podUid));
      return assigned;
    },
    work: (podUid) => values.get(workKey(podUid)),
    async waitForWork(podUid, signal) {
      using listener = new NotificationListener(connection, subjects.notifyVerifier(podUid));
      for (;;) {
        listener.reset();
        const found = await values.get(workKey(podUid));
        if (found !== undefined || signal.aborted) return found;
        await listener.wait(LOOK_INTERVAL_MS, signal);
      }
    },
    async putOutputs(podUid, outputs) {
      await values.put(outputsKey(podUid), Buffer.from(JSON.stringify(outputs)));
      notify(connection, subjects.notifyPromotions());
    },
    async outputs(podUid) {
      const found = await values.get(outputsKey(podUid));
      return found === undefined ? undefined : parseJsonBytes(found);
    },
    remove: (podUid) =>
      purge(
        connection,
        bucketStream(BUCKETS.verifications),
        bucketSubject(BUCKETS.verifications, `${token(podUid)}.>`),
      ),
  };
}
