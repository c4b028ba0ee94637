import { chainAfter } from '../../agent/messages/event-chain.ts';
import type { PublishedEvent } from '../../events/event.ts';
import { eventId } from '../../events/event-draft.ts';
import { PLATFORM_SUBJECTS, type PlatformSubject } from '../../events/platform/subjects.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { StampedEvent } from '../../tools/events.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import type { GatewayDeps } from '../deps.ts';

type Deps = Pick<GatewayDeps, 'namespaceEvents' | 'eventLimits' | 'clock' | 'log'>;

interface WorkEvent {
  readonly subject: PlatformSubject;
  readonly data: JsonObject;
  /** Identifies the event among those of the agent. */
  readonly key: string;
  readonly tainted: boolean;
}

const MAX_PATH = 1_024;

/** A tool that the gateway reviewed and registered. */
export async function publishForged(
  claims: DeliveryTokenClaims,
  { name, digest }: { readonly name: string; readonly digest: string },
  deps: Deps,
): Promise<void> {
  const { agent, session } = claims;
  const data = { agent, tool: name, digest };
  const key = `forged/${session}/${digest}`;
  await publish(claims, { subject: PLATFORM_SUBJECTS.toolForged, data, key, tainted: false }, deps);
}

/** Files that tools of the agent created, as its pod reports them: the names are those of a model, and may be of anyone. */
export async function publishCreatedFiles(
  claims: DeliveryTokenClaims,
  events: readonly StampedEvent[],
  key: string,
  deps: Deps,
): Promise<void> {
  const created = events.filter((event) => event.type === 'file-created' && event.session === claims.session);
  for (const [index, event] of created.entries()) {
    if (event.type !== 'file-created' || event.path.length > MAX_PATH) continue;
    const data = { agent: claims.agent, session: claims.session, path: event.path, bytes: event.bytes };
    const once = `${key}/files/${index}`;
    await publish(claims, { subject: PLATFORM_SUBJECTS.fileCreated, data, key: once, tainted: true }, deps);
  }
}

/**
 * The event continues the chain of the message that the agent works on. It is left out beyond the depth of chains and the rate of the agent.
 * Throws TEMPER_BUS_*; then the request is repeated, and its events are the same.
 */
async function publish(
  claims: DeliveryTokenClaims,
  { subject, data, key, tainted }: WorkEvent,
  deps: Deps,
): Promise<void> {
  const chain = chainAfter(claims, claims.agentUid);
  if (chain === undefined) return;
  const { agentUid, namespace, agent } = claims;
  const event: PublishedEvent = {
    id: eventId(agentUid, key),
    subject,
    data,
    source: 'Platform',
    agent,
    time: deps.clock.now().toISOString(),
    tainted,
    chain,
  };
  try {
    deps.eventLimits.take(claims);
    await deps.namespaceEvents.publish({ namespace, ownerUid: agentUid, event, onlyMatched: true });
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_RATE_LIMITED') && !isTemperError(error, 'TEMPER_EVENT_REFUSED')) throw error;
    deps.log.warn({ error, namespace, agent, subject }, 'an event about the work of an agent was not published');
  }
}
