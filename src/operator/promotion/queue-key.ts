import { isDigest } from '../../lib/canonical.ts';
import type { PromotionKey } from '../../nats/promotion/promotion-states.ts';
import type { PromotedSubject } from '../../tempering/promotion/promotion-record.ts';

/** The work queue key of a promotion. It begins with the namespace, because the namespaces of a queue take turns. */
export function queueKeyOf({ agent, digest }: Pick<PromotedSubject, 'agent' | 'digest'>): string {
  return `${agent.namespace}/${agent.uid}/${digest}`;
}

export function parseQueueKey(key: string): PromotionKey | undefined {
  const [, agentUid = '', digest = ''] = key.split('/');
  return isDigest(digest) ? { agentUid, digest } : undefined;
}
