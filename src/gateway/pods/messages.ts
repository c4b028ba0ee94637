import { assertNoCycle, nextDepth, receiverSession } from '../../agent/messages/chain.ts';
import { ASK_TOOL, TASK_TOOL } from '../../agent/tools/ask-tool.ts';
import { SEND_TOOL } from '../../agent/tools/send-tool.ts';
import type { Receipt as SendReceipt } from '../../bus/port.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { messageId } from '../../nats/inbox/inbox.ts';
import { InboxSender, senderOf } from '../../nats/inbox/message-ports.ts';
import { Receipt, SendMessageRequest, TaskRequest, TaskState } from '../../gateway-api/delivery-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { TRACEPARENT } from '../../telemetry/traceparent.ts';
import type { GatewayDeps } from '../deps.ts';
import { type AuthorizedDelivery, authorizeDelivery } from '../delivery/authorize.ts';
import { requestWakeup } from './wakeup.ts';
import { assertBrokeredCall, type BrokeredCall } from '../delivery/brokered-call.ts';
import { isChildOf } from '../children/family.ts';
import { sentMessage } from '../delivery/carried-calls.ts';
import { signFor } from '../delivery/sign-answer.ts';
import { assertNotClosed } from '../storage/closed-sessions.ts';
import { parentSpanOf, publishTraced } from '../tracing/message-traces.ts';
import { longPollSignal } from '../http/long-poll.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';

/** Messages between agents. An agent cannot start a chain: it sends only with the token of its current delivery. */
export function messageRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.messages,
    {
      config: { access: 'pod', idempotent: true, writesStorage: true },
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
      await assertAllowed(delivery, request.body, op.key, deps);
      const receipt = await sendOnward(delivery, request.body, op, parent, deps);
      if (request.body.ask === undefined)
        signFor(delivery.claims, reply, sentMessage(request.body.draft, receipt.id), deps);
      return receipt;
    },
  );
  server.post(
    POD_API_PATHS.tasks,
    {
      config: { access: 'pod', longPoll: true },
      schema: {
        ...POD_SECURITY,
        summary: 'The state of a message that asked another agent',
        body: TaskRequest,
        response: { 200: TaskState, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const { deliveryToken, ticket, waitSeconds } = request.body;
      const { claims } = authorizeDelivery(request, deliveryToken, deps);
      const milliseconds = waitSeconds * 1_000;
      const signal = longPollSignal(milliseconds, request, deps);
      const task = await deps.answers.task(claims, ticket, milliseconds, signal);
      await deps.recorder.used(claims, TASK_TOOL.category);
      return task;
    },
  );
}

/** Sends a message of the delivery, whose policy the caller has checked. Idempotent per `op.key`. */
export async function sendOnward(
  delivery: AuthorizedDelivery,
  { draft, ask }: Pick<SendMessageRequest, 'draft' | 'ask'>,
  op: CallOptions,
  parent: string | undefined,
  deps: GatewayDeps,
): Promise<SendReceipt> {
  const { claims, state } = delivery;
  const depth = nextDepth(claims.agent, draft.to, claims.depth);
  const receiver = deps.directory.agent(claims.namespace, draft.to);
  if (receiver === undefined) throw new TemperError('TEMPER_NOT_FOUND', `there is no agent "${draft.to}"`);
  const session = receiverSession(claims.agent, draft.session);
  const ancestors = [...(claims.ancestors ?? []), state.uid];
  if (ask !== undefined) assertNoCycle(ancestors, receiver.uid, draft.to);
  await assertNotClosed(receiver, session, deps);
  // What the gateway recorded; a pod can only add to it.
  const tainted = draft.tainted === true || (await deps.sessions.tainted(claims.agentUid, claims.session));
  // Before the message: the gateway that gets the answer finds the record.
  if (ask !== undefined)
    await deps.answers.open(claims, messageId(senderOf(state.uid, receiver.uid, op.key)), draft.to);
  const { receipt } = await publishTraced(parent, { session, seed: `${receiver.uid}/${op.key}` }, (traceparent) => {
    const sender = new InboxSender({
      inbox: deps.inbox,
      clock: deps.clock,
      from: { uid: state.uid, name: claims.agent },
      chain: {
        root: claims.root,
        depth,
        deadline: claims.deadline,
        source: 'Agent',
        ...(tainted ? { tainted } : {}),
        ancestors,
        ...(ask === undefined ? {} : { asker: state.uid }),
      },
      receiverUid: () => receiver.uid,
      traceparent,
    });
    return sender.send({ ...draft, session }, op);
  });
  await Promise.all([requestWakeup(receiver, deps), deps.recorder.used(claims, SEND_TOOL.category)]);
  return receipt;
}

/** Checks the policy for the tool and for the receiver. */
async function assertAllowed(
  delivery: AuthorizedDelivery,
  { draft, ask }: Pick<SendMessageRequest, 'draft' | 'ask'>,
  key: string,
  deps: GatewayDeps,
): Promise<void> {
  const { claims, state } = delivery;
  const { to, session, text } = draft;
  const wait = ask?.wait === undefined ? {} : { wait: ask.wait };
  // The tool has the session of the caller as its default.
  const own = session === claims.session ? [digestOf({ to, text, ...wait })] : [];
  const child = isChildOf(deps.directory.agent(claims.namespace, to), state);
  const call: BrokeredCall = {
    tool: ask === undefined ? SEND_TOOL : ASK_TOOL,
    input: { to, session, text, ...wait },
    requests: [{ kind: 'Message', agent: to, child }],
    digests: [digestOf({ to, session, text, ...wait }), ...own],
    key,
  };
  await assertBrokeredCall(delivery, call, deps);
}
