import { type Static, Type } from 'typebox';
import type { AuditRecord } from '../audit/port.ts';
import type { PodIdentity } from '../identity/types.ts';
import type { JsonObject } from '../lib/json.ts';
import { PATHS } from '../remote/wire.ts';
import type { ToolUse } from '../tempering/types.ts';
import type { Gate, StampedEvent } from '../tools/events.ts';
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

/** Of one record. What is larger is left out, and that it was is kept. */
const FACTS_BYTES = 16_384;

/**
 * Takes what pods say of themselves, and keeps it as said: under the agent the pod is, as claimed, never as observed. A pod repeats
 * what it got no answer to, to any replica: under one key each claim is kept once.
 */
export function claimRoutes(server: GatewayServer, deps: GatewayDeps): void {
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
      const left = await keep(request.pod, request.body, request.idempotencyKey, deps);
      if (left > 0)
        deps.log.warn({ correlation: request.id, left }, 'claims of what only a gateway decides were left out');
      return reply.code(204).send(null);
    },
  );
}

/** How many events were left out. */
async function keep(pod: PodIdentity, claims: Static<typeof Body>, given: string, deps: GatewayDeps): Promise<number> {
  const { agentUid, namespace } = pod;
  const key = `claims/${agentUid}/${given}`;
  const { events = [], audit = [], uses = [] } = claims;
  let left = 0;
  for (const [index, event] of (events as StampedEvent[]).entries()) {
    if (isForGateways(event)) {
      left += 1;
      continue;
    }
    const line = { kind: 'event', event: stampedEvent(pod, event, deps) } as const;
    await deps.events.append(agentUid, event.session, line, { once: `${key}/event/${index}` });
  }
  for (const [index, record] of audit.entries()) {
    await deps.audit.append(namespace, claimedRecord(pod, record), `${key}/audit/${index}`);
  }
  await deps.uses.record(
    agentUid,
    uses.map((use) => claimedUse(pod, use)),
    key,
  );
  return left;
}

const REVIEWED: ReadonlySet<Gate> = new Set(['judge', 'register']);

/** What is decided outside pods is told by who decides it: nobody who follows is to see a verdict that an agent made up. */
function isForGateways(event: StampedEvent): boolean {
  switch (event.type) {
    case 'forge-gate': {
      const { gate, passed } = event.result;
      // A pod does not submit what its own look at the policy refuses.
      return REVIEWED.has(gate) || (gate === 'policy' && passed);
    }
    case 'forge-refused':
      return REVIEWED.has(event.gate);
    case 'forge-accepted':
    case 'promotion':
    case 'demotion':
    case 'approval-requested':
    case 'approval-decided':
      return true;
    default:
      return false;
  }
}

function stampedEvent(pod: PodIdentity, event: StampedEvent, { clock }: GatewayDeps): StampedEvent {
  const time = Number.isFinite(Date.parse(event.time)) ? event.time : clock.now().toISOString();
  return { ...event, agent: pod.agent, time };
}

function claimedRecord(pod: PodIdentity, record: Static<typeof ClaimedRecord>): AuditRecord {
  const facts = fitting(record.facts as JsonObject);
  return { ...record, facts, actor: `agent/${pod.agent}`, evidence: 'claimed' };
}

function claimedUse(pod: PodIdentity, use: Static<typeof ClaimedUse>): ToolUse {
  return { ...(use as ToolUse), agent: pod.agent, namespace: pod.namespace, evidence: 'claimed' };
}

function fitting(facts: JsonObject): JsonObject {
  const bytes = Buffer.byteLength(JSON.stringify(facts));
  return bytes > FACTS_BYTES ? { omitted: `${bytes} bytes` } : facts;
}
