import { STREAMS } from '../../../nats/jetstream/names.ts';
import { readMessages } from '../../../nats/jetstream/stream-reader.ts';
import type { JetStreamConnection } from '../../../nats/connection/connection.ts';
import { natsError } from '../../../nats/connection/errors.ts';
import type { AuditStream } from '../../provenance/audit-chain.ts';

const NANOS_PER_MS = 1_000_000;

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
