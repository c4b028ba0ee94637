import type { PublishedEvent } from '../../events/event.ts';
import type { StoredDeadLetter } from '../../nats/dead-letters/dead-letter-writer.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { AgentDirectory } from '../deps.ts';
import type { EventPublisherPort } from './port.ts';

export interface PlatformEventsDeps {
  directory: Pick<AgentDirectory, 'byUid'>;
  events: Pick<EventPublisherPort, 'publish'>;
  log: Pick<Logger, 'warn'>;
}

/**
 * Informs the agents that wait for it of a message that became a dead letter. Its data has names and codes, and no text of a message. The failed
 * message of a trigger is no event: it could fire its own trigger. Never throws.
 */
export async function messageFailed(
  { id, agentUid, code, time, message }: StoredDeadLetter,
  { directory, events, log }: PlatformEventsDeps,
): Promise<void> {
  const state = directory.byUid(agentUid);
  const { name: agent, namespace } = state?.agent.metadata ?? {};
  if (agent === undefined || namespace === undefined || message === undefined || message.source === 'Trigger') return;
  const event: PublishedEvent = {
    id: `evt-failed-${id}`,
    subject: 'temper.message.failed',
    data: { agent, session: message.session, message: message.id, code },
    source: 'Platform',
    agent,
    time,
    tainted: false,
  };
  try {
    await events.publish({ namespace, ownerUid: agentUid, event, onlyMatched: true });
  } catch (error) {
    log.warn({ error, namespace, agent }, 'the event of a failed message was not published');
  }
}
