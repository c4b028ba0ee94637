import { isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, subjects, token } from '../jetstream/names.ts';
import { purge } from '../jetstream/stream-reader.ts';
import { NotificationListener, notify } from '../notify/notifications.ts';
import type { SourceCipher } from '../sources/source-cipher.ts';
import { createChunkedValues } from './chunked-values.ts';

/**
 * The work of verifier pods and the outputs that they sent, by the UID of the pod and the round: a pod serves one verification, and the
 * gateway gives it only its own work. Methods throw TEMPER_BUS_*.
 */
export interface Verifications {
  /** Gives the pod the work of a round. False when the round has one already; that one stays. */
  assign(podUid: string, round: number, work: Json): Promise<boolean>;
  /** The work of a round, as JSON text. */
  work(podUid: string, round: number): Promise<Buffer | undefined>;
  /** Waits for the work of a round until the signal aborts. */
  waitForWork(podUid: string, round: number, signal: AbortSignal): Promise<Buffer | undefined>;
  /** Stores the outputs that the pod sent for a round; the first ones stay, and those of a round without work are dropped. */
  putOutputs(podUid: string, round: number, outputs: Json): Promise<void>;
  /** Undefined until the pod has sent the outputs of the round. */
  outputs(podUid: string, round: number): Promise<Json | undefined>;
  /** Deletes the work and the outputs of the pod. */
  remove(podUid: string): Promise<void>;
}

/** A notification may be lost. */
const LOOK_INTERVAL_MS = 3_000;

/** With a cipher, work is stored encrypted: it has the sources of tools, and inputs that an examination derived from them. */
export function createVerifications(connection: JetStreamConnection, cipher?: SourceCipher): Verifications {
  const values = createChunkedValues(connection, BUCKETS.verifications);
  const workKey = (podUid: string, round: number): string => `${token(podUid)}.work.${round}`;
  const outputsKey = (podUid: string, round: number): string => `${token(podUid)}.outputs.${round}`;
  const readWork = async (podUid: string, round: number): Promise<Buffer | undefined> => {
    const key = workKey(podUid, round);
    const found = await values.get(key);
    const stored = found === undefined ? undefined : parseJsonBytes(found);
    if (!isJsonObject(stored) || stored['encrypted'] === undefined) return found;
    return cipher?.decrypt(key, stored['encrypted']);
  };
  return {
    async assign(podUid, round, work) {
      const key = workKey(podUid, round);
      const plain = Buffer.from(JSON.stringify(work));
      const stored =
        cipher === undefined ? plain : Buffer.from(JSON.stringify({ encrypted: cipher.encrypt(key, plain) }));
      const assigned = await values.put(key, stored);
      notify(connection, subjects.notifyVerifier(podUid));
      return assigned;
    },
    work: readWork,
    async waitForWork(podUid, round, signal) {
      using listener = new NotificationListener(connection, subjects.notifyVerifier(podUid));
      for (;;) {
        listener.reset();
        const found = await readWork(podUid, round);
        if (found !== undefined || signal.aborted) return found;
        await listener.wait(LOOK_INTERVAL_MS, signal);
      }
    },
    async putOutputs(podUid, round, outputs) {
      if (!(await values.has(workKey(podUid, round)))) return;
      await values.put(outputsKey(podUid, round), Buffer.from(JSON.stringify(outputs)));
      notify(connection, subjects.notifyPromotions());
    },
    async outputs(podUid, round) {
      const found = await values.get(outputsKey(podUid, round));
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
