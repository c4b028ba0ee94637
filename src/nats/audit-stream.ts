import { STREAMS } from './jetstream/names.ts';
import { readMessages } from './jetstream/stream-reader.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { natsError } from './connection/errors.ts';
import type { StreamBounds, StreamRecord } from '../audit/stream-chain.ts';

const NANOS_PER_MS = 1_000_000;

/** The observed records of the installation, of all namespaces. Methods throw TEMPER_BUS_*. */
export interface AuditStream {
  bounds(): Promise<StreamBounds>;
  /** The records from a sequence on up to another, oldest first. */
  read(from: number, through: number): AsyncIterable<StreamRecord>;
}

/** The audit stream of a connection that may change: `current` returns the one to use, or throws. */
export function natsAuditStream(current: () => JetStreamConnection): AuditStream {
  return {
    async bounds() {
      const connection = current();
      try {
        const { state, config } = await connection.request(() => connection.manager.streams.info(STREAMS.audit));
        return {
          firstSequence: state.first_seq,
          lastSequence: state.last_seq,
          maxAgeMs: config.max_age / NANOS_PER_MS,
        };
      } catch (error) {
        throw natsError(error, `reading the state of ${STREAMS.audit}`);
      }
    },
    async *read(from, through) {
      if (from > through) return;
      for await (const { seq, subject, time, data } of readMessages(current(), STREAMS.audit, 'temper.audit.>', from)) {
        if (seq > through) return;
        yield { seq, subject, time, data };
      }
    },
  };
}
