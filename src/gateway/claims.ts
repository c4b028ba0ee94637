import { LRUCache } from 'lru-cache';
import { type Static, Type } from 'typebox';
import type { AuditRecord } from '../audit/port.ts';
import type { PodIdentity } from '../identity/types.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import { PATHS } from '../remote/wire.ts';
import type { ToolUse } from '../tempering/types.ts';
import type { StampedEvent } from '../tools/events.ts';
import { ClaimedEvent, ClaimedRecord, ClaimedUse } from './claim-schemas.ts';
import type { GatewayDeps } from './deps.ts';
import type { GatewayServer } from './routes.ts';
import { closed, Done, POD, REFUSALS } from './schemas.ts';

const Body = Type.Object(
  {
    events: Type.Optional(Type.Array(ClaimedEvent, { maxItems: 500 })),
    audit: Type.Optional(Type.Array(ClaimedRecord, { maxItems: 500 })),
    uses: Type.Optional(Type.Array(ClaimedUse, { maxItems: 500 })),
  },
  { ...closed, description: '`Claims`: what the pod says of itself.' },
);

/** Of one record, and of the input of one use. What is larger is left out, and that it was is kept. */
const FACTS_BYTES = 16_384;
const USE_INPUT_BYTES = 32_768;
const REMEMBERED = 10_000;

/** Takes what pods say of themselves, and keeps it as said: under the agent the pod is, as claimed, never as observed. */
export function claimRoutes(server: GatewayServer, deps: GatewayDeps): void {
  // A pod repeats what it got no answer to, mostly to the same replica. A repeat that another one takes is a line twice.
  const taken = new LRUCache<string, true>({ max: REMEMBERED });
  server.post(
    PATHS.claims,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD,
        summary: 'Events, audit records and uses, as the pod claims them',
        body: Body,
        response: { 204: Done, ...REFUSALS },
      },
    },
    async (request, reply) => {
      const key = `${request.pod.agentUid}/${request.idempotencyKey}`;
      if (!taken.has(key)) {
        await keep(request.pod, request.body, deps);
        taken.set(key, true);
      }
      return reply.code(204).send(null);
    },
  );
}

async function keep(pod: PodIdentity, claims: Static<typeof Body>, deps: GatewayDeps): Promise<void> {
  const { agentUid, namespace } = pod;
  const { events = [], audit = [], uses = [] } = claims;
  for (const event of events) {
    const stamped = stampedEvent(pod, event as StampedEvent, deps);
    await deps.events.append(agentUid, event.session, { kind: 'event', event: stamped });
  }
  for (const record of audit) await deps.audit.append(namespace, claimedRecord(pod, record));
  for (const use of uses) await deps.uses.record(agentUid, claimedUse(pod, use));
}

function stampedEvent(pod: PodIdentity, event: StampedEvent, { clock }: GatewayDeps): StampedEvent {
  const time = Number.isFinite(Date.parse(event.time)) ? event.time : clock.now().toISOString();
  return { ...event, agent: pod.agent, time };
}

function claimedRecord(pod: PodIdentity, record: Static<typeof ClaimedRecord>): AuditRecord {
  const facts = fitting(record.facts as JsonObject, FACTS_BYTES);
  return { ...record, facts, actor: `agent/${pod.agent}`, evidence: 'claimed' };
}

function claimedUse(pod: PodIdentity, use: Static<typeof ClaimedUse>): ToolUse {
  const input = fitting(use.input as Json, USE_INPUT_BYTES);
  return { ...(use as ToolUse), input, agent: pod.agent, namespace: pod.namespace, evidence: 'claimed' };
}

function fitting<J extends Json>(value: J, maximum: number): J | JsonObject {
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > maximum ? { omitted: `${bytes} bytes` } : value;
}
