import { SEND_TOOL } from '../../agent/tools/send-tool.ts';
import { assertSessionId } from '../../agent/session/session-id.ts';
import type { MessageDraft, Receipt as SendReceipt } from '../../bus/port.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { InboxSender } from '../../nats/inbox/message-ports.ts';
import type { Decider, Decision, PolicyRequest } from '../../policy/types.ts';
import { Receipt, SendMessageRequest } from '../../gateway-api/delivery-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { AgentState, GatewayDeps } from '../deps.ts';
import { type AuthorizedDelivery, authorizeDelivery } from '../delivery/authorize.ts';
import { sentMessage } from '../delivery/carried-calls.ts';
import { signFor } from '../delivery/sign-answer.ts';
import { assertNotClosed } from '../storage/closed-sessions.ts';
import { parentSpanOf, publishTraced } from '../tracing/message-traces.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';

const MAX_CHAIN_DEPTH = 5;

/** Messages between agents. An agent cannot start a chain: it sends only with the token of its current delivery. */
export function messageRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.messages,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Sends a message to another agent of the namespace',
        body: SendMessageRequest,
        response: { 200: Receipt, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const delivery = authorizeDelivery(request, request.body.deliveryToken, deps);
      const parent = parentSpanOf(delivery.claims, request.headers[TRACEPARENT]);
      const op = { signal: request.disconnected, deadline: Number.POSITIVE_INFINITY, key: request.idempotencyKey };
      await assertAllowed(delivery, request.body.draft, op.key, deps);
      const receipt = await send(delivery, request.body.draft, op, parent, deps);
      signFor(delivery.claims, reply, sentMessage(request.body.draft, receipt.id), deps);
      return receipt;
    },
  );
}

async function send(
  delivery: AuthorizedDelivery,
  draft: MessageDraft,
  op: CallOptions,
  parent: string | undefined,
  deps: GatewayDeps,
): Promise<SendReceipt> {
  const { claims, state } = delivery;
  const depth = claims.depth + 1;
  if (depth > MAX_CHAIN_DEPTH) {
    throw new TemperError(
      'TEMPER_MESSAGE_DEPTH',
      `a message from "${claims.agent}" to "${draft.to}" would be ${depth} deep in its chain; ${MAX_CHAIN_DEPTH} is allowed`,
    );
  }
  const receiver = deps.directory.agent(claims.namespace, draft.to);
  if (receiver === undefined) throw new TemperError('TEMPER_NOT_FOUND', `there is no agent "${draft.to}"`);
  const session = receiverSession(claims.agent, draft.session);
  await assertNotClosed(receiver, session, deps);
  const { receipt } = await publishTraced(parent, { session, seed: `${receiver.uid}/${op.key}` }, (traceparent) => {
    const sender = new InboxSender({
      inbox: deps.inbox,
      clock: deps.clock,
      from: { uid: state.uid, name: claims.agent },
      chain: { root: claims.root, depth, deadline: claims.deadline },
      receiverUid: () => receiver.uid,
      traceparent,
    });
    return sender.send({ ...draft, session }, op);
  });
  await Promise.all([requestWakeup(receiver, deps), deps.recorder.used(claims, SEND_TOOL.category)]);
  return receipt;
}

/** Requests a pod for an agent without one. */
export async function requestWakeup({ uid, podUid }: AgentState, { wakeups: wakes }: GatewayDeps): Promise<void> {
  if (podUid === undefined) await wakes.publish(uid);
}

/**
 * The receiver's session for messages of this sender. Agents cannot write into sessions of users. Agent names contain no dot, so sessions
 * of two senders never collide.
 */
function receiverSession(sender: string, session: string): string {
  const own = `${sender}.${session}`;
  assertSessionId(own);
  return own;
}

/**
 * Checks the policy for the send tool and for the receiver, so that a pod that skips its own checks has no further rights. A call that
 * the policy escalates needs a used approval of exactly these arguments, for one message. Throws TEMPER_POLICY_DENIED. Reads the taint of
 * the session only when the decision depends on it.
 */
async function assertAllowed(
  { claims, state }: AuthorizedDelivery,
  { to, session, text }: MessageDraft,
  key: string,
  deps: GatewayDeps,
): Promise<void> {
  const { name, category, action } = SEND_TOOL;
  const requests: PolicyRequest[] = [
    { kind: 'Tool', name, category, action, forged: false, arguments: { to, session, text } },
    { kind: 'Message', agent: to },
  ];
  const decide = (tainted: boolean): Decision => firstDenial(deps.directory.decider(state, tainted), requests);
  let decision = decide(true);
  if (decision.effect === 'Allow') return;
  const clean = decide(false);
  if (clean.effect !== decision.effect && !(await deps.sessions.tainted(claims.agentUid, claims.session))) {
    decision = clean;
  }
  if (decision.effect === 'Allow') return;
  if (decision.effect === 'Escalate') {
    // The tool has the session of the caller as its default.
    const digests = [digestOf({ to, session, text }), ...(session === claims.session ? [digestOf({ to, text })] : [])];
    if (await deps.approvals.permits(claims, { tool: name, digests, key })) return;
  }
  throw new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
}

/** The first decision that does not allow, or the last one. */
function firstDenial(decider: Decider, requests: readonly PolicyRequest[]): Decision {
  const decisions = requests.map((request) => decider.decide(request));
  const result = decisions.find(({ effect }) => effect !== 'Allow') ?? decisions.at(-1);
  if (result === undefined) throw new TypeError('no policy request was given');
  return result;
}
