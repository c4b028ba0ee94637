import type { FastifyRequest } from 'fastify';
import {
  PUBLISH_TOOL,
  SUBSCRIBE_TOOL,
  SUBSCRIPTIONS_TOOL,
  UNSUBSCRIBE_TOOL,
} from '../../agent/tools/events/event-tools.ts';
import type { PublishedEvent } from '../../events/event.ts';
import { assertEventSize, callDigest, eventId } from '../../events/event-draft.ts';
import { newSubscription } from '../../events/subscription.ts';
import {
  EventReceipt,
  ListSubscriptionsRequest,
  PublishEventRequest,
  SubscribeRequest,
  SubscriptionList,
  SubscriptionReceipt,
  UnsubscribeReceipt,
  UnsubscribeRequest,
} from '../../gateway-api/events/event-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { GatewayDeps } from '../deps.ts';
import { type AuthorizedDelivery, authorizeDelivery } from '../delivery/authorize.ts';
import { assertBrokeredCall } from '../delivery/brokered-call.ts';
import { mapInBatches } from '../concurrency-limit.ts';
import type { GatewayServer } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { eventChain } from '../../agent/messages/event-chain.ts';

/** Agents publish events and subscribe to them. An agent cannot start a chain: it acts only with the token of its current delivery. */
export function eventRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.events,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Publishes an event in the namespace',
        body: PublishEventRequest,
        response: { 200: EventReceipt, ...ERROR_RESPONSES },
      },
    },
    async (request) => publish(request, request.body, deps),
  );
  server.post(
    POD_API_PATHS.subscriptions,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Subscribes the session to events',
        body: SubscribeRequest,
        response: { 200: SubscriptionReceipt, ...ERROR_RESPONSES },
      },
    },
    async (request) => subscribe(request, request.body, deps),
  );
  subscriptionRoutes(server, deps);
}

function subscriptionRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.post(
    POD_API_PATHS.endSubscription,
    {
      config: { access: 'pod', idempotent: true },
      schema: {
        ...POD_SECURITY,
        summary: 'Ends a subscription',
        body: UnsubscribeRequest,
        response: { 200: UnsubscribeReceipt, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const { deliveryToken, id } = request.body;
      const delivery = authorizeDelivery(request, deliveryToken, deps);
      await assertCall(delivery, UNSUBSCRIBE_TOOL, { id }, [], request.idempotencyKey, deps);
      const ended = await deps.subscriptions.end(ownerOf(delivery), id);
      await deps.recorder.used(delivery.claims, UNSUBSCRIBE_TOOL.category);
      return { ended };
    },
  );
  server.post(
    POD_API_PATHS.listSubscriptions,
    {
      config: { access: 'pod' },
      schema: {
        ...POD_SECURITY,
        summary: 'The subscriptions of the agent',
        body: ListSubscriptionsRequest,
        response: { 200: SubscriptionList, ...ERROR_RESPONSES },
      },
    },
    async (request) => {
      const delivery = authorizeDelivery(request, request.body.deliveryToken, deps);
      await assertCall(delivery, SUBSCRIPTIONS_TOOL, {}, [], delivery.claims.message, deps);
      const subscriptions = await subscriptionsOf(delivery, deps);
      await deps.recorder.used(delivery.claims, SUBSCRIPTIONS_TOOL.category);
      return { subscriptions };
    },
  );
}

async function publish(
  request: FastifyRequest,
  { deliveryToken, event: draft }: PublishEventRequest,
  deps: GatewayDeps,
): Promise<EventReceipt> {
  const delivery = authorizeDelivery(request, deliveryToken, deps);
  const { claims, state } = delivery;
  const { subject, data = null, to } = draft;
  const { idempotencyKey: key } = request;
  const chain = eventChain(
    claims,
    { name: claims.agent, uid: state.uid },
    draft.ttlSeconds,
    deps.clock.now().getTime(),
  );
  await assertCall(delivery, PUBLISH_TOOL, draft as unknown as Json, [{ kind: 'Publish', subject }], key, deps);
  assertEventSize(data);
  deps.eventLimits.take(claims);
  const event: PublishedEvent = {
    id: eventId(state.uid, key),
    subject,
    data,
    source: 'Agent',
    agent: claims.agent,
    time: deps.clock.now().toISOString(),
    tainted: await deps.sessions.tainted(state.uid, claims.session),
    chain,
  };
  const { messages, refused } = await deps.namespaceEvents.publish({ ...ownedBy(delivery), event, to });
  await deps.recorder.used(claims, PUBLISH_TOOL.category);
  return { id: event.id, messages, refused };
}

async function subscribe(
  request: FastifyRequest,
  { deliveryToken, subscription: draft }: SubscribeRequest,
  deps: GatewayDeps,
): Promise<SubscriptionReceipt> {
  const delivery = authorizeDelivery(request, deliveryToken, deps);
  const { claims, state } = delivery;
  const { idempotencyKey: key } = request;
  const { subject } = draft;
  await assertCall(
    delivery,
    SUBSCRIBE_TOOL,
    draft as unknown as Json,
    [{ kind: 'Subscribe', pattern: subject }],
    key,
    deps,
  );
  const wanted = newSubscription(draft, claims.session, deps.clock.now().getTime());
  const added = await deps.subscriptions.add(ownerOf(delivery), callDigest(state.uid, key, 12), wanted);
  await deps.recorder.used(claims, SUBSCRIBE_TOOL.category);
  return { id: added.id, expiresAt: added.expiresAt };
}

async function subscriptionsOf(
  delivery: AuthorizedDelivery,
  { subscriptions, triggerFires }: GatewayDeps,
): Promise<SubscriptionList['subscriptions']> {
  const { uid, namespace } = ownerOf(delivery);
  const own = (await subscriptions.of(namespace)).filter(({ agentUid }) => agentUid === uid);
  return mapInBatches(own, async ({ id, subject, session, expiresAt }) => {
    const { fires } = await triggerFires.read(uid, id);
    return { id, subject, session, expiresAt, fires };
  });
}

async function assertCall(
  delivery: AuthorizedDelivery,
  tool: ToolDescriptor,
  input: Json,
  requests: readonly PolicyRequest[],
  key: string,
  deps: GatewayDeps,
): Promise<void> {
  await assertBrokeredCall(delivery, { tool, input, requests, digests: [digestOf(input)], key }, deps);
}

function ownerOf({ claims, state }: AuthorizedDelivery): { uid: string; namespace: string } {
  return { uid: state.uid, namespace: claims.namespace };
}

function ownedBy(delivery: AuthorizedDelivery): { ownerUid: string; namespace: string } {
  const { uid, namespace } = ownerOf(delivery);
  return { ownerUid: uid, namespace };
}
