import { triggersOf } from '../../api/schedule/triggers.ts';
import {
  verifiedRequestId,
  webhookEvent,
  type WebhookPath,
  type WebhookRequest,
} from '../../events/webhook/request.ts';
import type { Clock } from '../../lib/clock.ts';
import { unknownAgent } from '../messages/local-bus.ts';
import { type Member, memberKey } from '../team/member.ts';
import type { Post } from '../team/post.ts';

/** What the sender of a request gets. */
export interface WebhookReceipt {
  /** Id of the event. */
  readonly id: string;
  /** 1 when the agent has a message, 0 when a limit of the trigger let the event pass. */
  readonly messages: number;
}

export interface ReceiveDeps {
  find: (key: string) => Member | undefined;
  post: Pick<Post, 'fromWebhook'>;
  clock: Clock;
}

/**
 * Gives an agent the message of a signed request, once for each id. Throws TEMPER_NOT_FOUND for a request that no webhook accepts,
 * TEMPER_REQUEST_INVALID for a body that is not JSON, and TEMPER_BUS_FULL.
 */
export async function receiveWebhook(
  path: WebhookPath,
  request: WebhookRequest,
  keys: readonly Uint8Array[],
  { find, post, clock }: ReceiveDeps,
): Promise<WebhookReceipt> {
  const key = memberKey({ name: path.agent, namespace: path.namespace });
  const member = find(key);
  const { webhook } = triggersOf(member?.agent.spec ?? {}).find(({ name }) => name === path.trigger) ?? {};
  const id = verifiedRequestId(request, { webhook, keys }, clock);
  if (member === undefined) throw unknownAgent(path.agent);
  const event = webhookEvent(path, key, { id, body: request.body }, clock);
  const { messages } = await post.fromWebhook(member, path.trigger, event);
  return { id: event.id, messages };
}
