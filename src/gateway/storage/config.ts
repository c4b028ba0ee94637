import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { DEFAULT_STORAGE_LIMITS, type StorageLimits } from '../../nats/residents/storage-limits.ts';

const Bytes = (description: string) => Type.Optional(Type.Integer({ minimum: 65_536, maximum: 2 ** 40, description }));

/** Limits of what agents store in NATS. */
export const StorageSection = Type.Object(
  {
    sessionBytes: Bytes('Bytes of the history of one session.'),
    agentSessionBytes: Bytes('Bytes of all histories of one agent.'),
    agentSessionToolBytes: Bytes('Bytes of all session tools of one agent.'),
    agentSourceBytes: Bytes('Bytes of the encrypted sources of one agent with `forge.persistSource: false`.'),
    agentMemoryBytes: Bytes('Bytes of the memory of one agent.'),
    agentEvidenceBytes: Bytes('Bytes of the recorded uses and inputs of all tools of one agent.'),
    agentInboxBytes: Bytes('Bytes of the messages that wait for one agent.'),
    namespacePercent: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        description:
          'Share of what other namespaces leave free of each stream and bucket, for the agents of one namespace together.',
      }),
    ),
  },
  closed,
);

export function storageLimits(section: Static<typeof StorageSection> = {}): StorageLimits {
  const { sessionBytes, agentBytes, namespacePercent } = DEFAULT_STORAGE_LIMITS;
  return {
    sessionBytes: section.sessionBytes ?? sessionBytes,
    agentBytes: {
      sessions: section.agentSessionBytes ?? agentBytes.sessions,
      sessionTools: section.agentSessionToolBytes ?? agentBytes.sessionTools,
      sources: section.agentSourceBytes ?? agentBytes.sources,
      memory: section.agentMemoryBytes ?? agentBytes.memory,
      evidence: section.agentEvidenceBytes ?? agentBytes.evidence,
      inbox: section.agentInboxBytes ?? agentBytes.inbox,
      tasks: agentBytes.tasks,
      requests: agentBytes.requests,
    },
    namespacePercent: section.namespacePercent ?? namespacePercent,
  };
}
