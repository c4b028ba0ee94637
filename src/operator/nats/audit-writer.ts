import { createNatsAudit } from '../../nats/audit.ts';
import type { OperatorAudit } from '../ports.ts';
import type { NatsLink } from './nats-link.ts';

/** Audit records about objects, which belong to a namespace and to no agent. */
export function natsOperatorAudit(link: Pick<NatsLink, 'current'>): OperatorAudit {
  return {
    async append(namespace, record, once) {
      await createNatsAudit(link.current()).append({ namespace, agentUid: '' }, record, once);
    },
  };
}
