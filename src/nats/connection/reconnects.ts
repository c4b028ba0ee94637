import type { JetStreamConnection } from './connection.ts';

/** Notices reconnects: after one the store may be another, in which sequences and revisions start again. */
export class Reconnects {
  readonly #connection: Pick<JetStreamConnection, 'state'>;
  #since: number;

  constructor(connection: Pick<JetStreamConnection, 'state'>) {
    this.#connection = connection;
    this.#since = connection.state().since.getTime();
  }

  /** Whether the connection was lost or came back since the last call. */
  happened(): boolean {
    const since = this.#connection.state().since.getTime();
    const isAnother = since !== this.#since;
    this.#since = since;
    return isAnother;
  }
}
