import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';

/** The user of a wiretap, for the fixture of NATS. */
export const WIRETAP_USER = { wiretap: { publish: [], subscribe: ['>'] } };

/** The subjects of all requests to NATS, in their order. A read of the last value of a key names the bucket in place of its stream. */
export class Wiretap {
  #requests: string[] = [];

  /** `connection` belongs to the user of `WIRETAP_USER`. */
  static async open(connection: JetStreamConnection): Promise<Wiretap> {
    const tap = new Wiretap();
    connection.nats.subscribe('>', {
      callback: (_error, { subject, reply, data }) => {
        // A message without a reply subject is a notification, and an answer goes to a private inbox.
        if (reply !== undefined && reply !== '' && !subject.startsWith('_INBOX'))
          tap.#requests.push(bucketRead(subject, data) ?? subject);
      },
    });
    await connection.nats.flush();
    return tap;
  }

  requests(): readonly string[] {
    return this.#requests;
  }

  clear(): void {
    this.#requests = [];
  }
}

const READ = '$JS.API.STREAM.MSG.GET.';

/** Several buckets can share a stream, so only the request names the one that it reads. */
function bucketRead(subject: string, data: Uint8Array): string | undefined {
  if (!subject.startsWith(READ)) return undefined;
  const { last_by_subj: key = '' } = JSON.parse(Buffer.from(data).toString()) as { last_by_subj?: string };
  const [store, bucket] = key.split('.', 2);
  return store === '$KV' ? `${READ}${bucket}` : undefined;
}
