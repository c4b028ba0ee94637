import { STREAMS, subjects } from '../../../nats/jetstream/names.ts';
import { messageAt } from '../../../nats/jetstream/stream-reader.ts';
import { createPendingCalls, type PendingCall } from '../../../nats/pending-calls.ts';
import type { PendingCallSource } from '../../ports.ts';
import type { NatsLink } from '../nats-link.ts';

/** The port over NATS. While NATS is unreachable, calls fail at once with TEMPER_BUS_UNAVAILABLE. */
export function natsPendingCalls(link: Pick<NatsLink, 'current'>): PendingCallSource {
  const store = () => createPendingCalls(link.current());
  return {
    revision: () => store().revision(),
    agents: () => store().agents(),
    calls: (agentUid) => store().of(agentUid),
    async hasMessage({ agentUid, sequence }) {
      const found = await messageAt(link.current(), STREAMS.inbox, sequence);
      return found?.subject === subjects.inbox(agentUid);
    },
    async remove(agentUid, ended) {
      const gone = new Set(ended.map(({ request }) => request));
      await store().update(agentUid, (calls) => {
        const left = calls.filter(({ request }: PendingCall) => !gone.has(request));
        return left.length === calls.length ? calls : left;
      });
    },
  };
}
