import { Type } from 'typebox';
import { SEND_TOOL } from '../agent/send-tool.ts';
import { assertSessionId } from '../agent/session-id.ts';
import type { Draft, Receipt } from '../bus/port.ts';
import { TemperError } from '../lib/errors.ts';
import { createDecider } from '../policy/decider.ts';
import type { Decider, Decision, PolicyRequest } from '../policy/types.ts';
import { PATHS } from '../remote/wire.ts';
import { TRACEPARENT } from '../telemetry/traceparent.ts';
import type { AgentState, GatewayDeps } from './deps.ts';
import { type HeldLease, leaseOf } from './lease-check.ts';
import { parentUnder, sendTraced } from './message-traces.ts';
import type { GatewayServer } from './routes.ts';
import { AgentName, closed, Lease, POD, REFUSALS, SessionId, TEXT_CHARACTERS, text } from './schemas.ts';

const DEEPEST = 5;

const Body = Type.Object(
  {
    lease: Lease,
    draft: Type.Object({ to: AgentName, session: SessionId, text: text(TEXT_CHARACTERS, 'What to say.') }, closed),
  },
  closed,
);

const ReceiptBody = Type.Object({ id: Type.String(), duplicate: Type.Boolean() }, closed);

/** Messages from agent to agent. An agent begins no chain: it sends only under the lease of what it works on. */
export function messageRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    PATHS.messages,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD,
        summary: 'Sends a message to another agent of the namespace',
        body: Body,
        response: { 200: ReceiptBody, ...REFUSALS },
      },
    },
    async (request) => {
      const held = leaseOf(request, request.body.lease, deps);
      const parent = parentUnder(held.claims, request.headers[TRACEPARENT]);
      return send(held, request.body.draft, request.idempotencyKey, parent, deps);
    },
  );
}

async function send(
  held: HeldLease,
  draft: Draft,
  key: string,
  parent: string | undefined,
  deps: GatewayDeps,
): Promise<Receipt> {
  const { claims, state } = held;
  const depth = claims.depth + 1;
  if (depth > DEEPEST) {
    throw new TemperError(
      'TEMPER_MESSAGE_DEPTH',
      `a message from "${claims.agent}" to "${draft.to}" would be ${depth} deep in its chain; ${DEEPEST} is allowed`,
    );
  }
  await assertMay(held, draft, deps);
  const receiver = deps.directory.agent(claims.namespace, draft.to);
  if (receiver === undefined) throw new TemperError('TEMPER_NOT_FOUND', `there is no agent "${draft.to}"`);
  const message = {
    to: draft.to,
    from: claims.agent,
    session: receiverSession(claims.agent, draft.session),
    text: draft.text,
    root: claims.root,
    depth,
    deadline: claims.deadline,
    time: deps.clock.now().toISOString(),
  };
  const sender = { uid: state.uid, key: `${receiver.uid}/${key}` };
  const { receipt } = await sendTraced(parent, { session: message.session, seed: sender.key }, (traceparent) =>
    deps.inbox.publish(receiver.uid, sender, { ...message, traceparent }),
  );
  await wakeIfAsleep(receiver, deps);
  return receipt;
}

/** Asks for a pod for an agent that has none. */
export async function wakeIfAsleep({ uid, podUid }: AgentState, { wakes }: GatewayDeps): Promise<void> {
  if (podUid === undefined) await wakes.publish(uid);
}

/**
 * The session an agent's message lands in: one of the sender's own at the receiver. What people say to the receiver stays
 * in sessions no agent can write into. Agents' names hold no dot, so two senders never meet.
 */
function receiverSession(sender: string, session: string): string {
  const own = `${sender}.${session}`;
  assertSessionId(own);
  return own;
}

/**
 * Throws TEMPER_POLICY_DENIED, for the tool that sends and for the receiver: a pod that calls here without its own checks can do no more
 * than its agent. Whether the session is tainted is only looked up when the policy makes a difference of it.
 */
async function assertMay({ claims, state }: HeldLease, { to, session, text }: Draft, deps: GatewayDeps): Promise<void> {
  const { name, category, action } = SEND_TOOL;
  const requests: PolicyRequest[] = [
    { kind: 'Tool', name, category, action, forged: false, arguments: { to, session, text } },
    { kind: 'Message', agent: to },
  ];
  const ask = (tainted: boolean): Decision =>
    firstRefusal(createDecider(deps.directory.snapshot(state, tainted)), requests);
  let decision = ask(true);
  if (decision.effect === 'Allow') return;
  const clean = ask(false);
  if (clean.effect !== decision.effect && !(await deps.sessions.tainted(claims.agentUid, claims.session))) {
    decision = clean;
  }
  if (decision.effect === 'Allow') return;
  throw new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
}

/** The first decision that is no permission, or the last one. */
function firstRefusal(decider: Decider, requests: readonly PolicyRequest[]): Decision {
  const decisions = requests.map((request) => decider.decide(request));
  const found = decisions.find(({ effect }) => effect !== 'Allow') ?? decisions.at(-1);
  if (found === undefined) throw new TypeError('nothing was asked');
  return found;
}
