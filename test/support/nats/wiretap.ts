import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';

/** The user of a wiretap, for the fixture of NATS. */
export const WIRETAP_USER = { wiretap: { publish: [], subscribe: ['>'] } };

/** The subjects of all requests to NATS, in their order. */
export class Wiretap {
  #requests: string[] = [];

  /** `connection` belongs to the user of `WIRETAP_USER`. */
  static async open(connection: JetStreamConnection): Promise<Wiretap> {
    const tap = new Wiretap();
    connection.nats.subscribe('>', {
      callback: (_error, { subject, reply }) => {
        // A message without a reply subject is a notification, and an answer goes to a private inbox.
        if (reply !== undefined && reply !== '' && !subject.startsWith('_INBOX')) tap.#requests.push(subject);
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
