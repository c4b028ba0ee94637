import { triggersOf } from '../../api/schedule/triggers.ts';
import { verifiedRequestId, type WebhookPath, type WebhookRequest } from '../../events/webhook/request.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';
import type { WebhookKeys } from './keys.ts';

export interface VerifyDeps {
  directory: Pick<AgentDirectory, 'agent'>;
  keys: Pick<WebhookKeys, 'of'>;
  clock: Clock;
}

/** A request whose signature is that of the trigger. */
export interface VerifiedWebhook {
  readonly state: AgentState;
  readonly id: string;
}

/** Throws TEMPER_NOT_FOUND, also for an unknown agent, as `verifiedRequestId` does. */
export function verifyWebhook(
  { namespace, agent, trigger: name }: WebhookPath,
  request: WebhookRequest,
  { directory, keys, clock }: VerifyDeps,
): VerifiedWebhook {
  const state = directory.agent(namespace, agent);
  const { webhook } = triggersOf(state?.agent.spec ?? {}).find((trigger) => trigger.name === name) ?? {};
  const id = verifiedRequestId(request, { webhook, keys: keys.of(namespace, agent, name) }, clock);
  if (state === undefined) throw new TemperError('TEMPER_NOT_FOUND', 'there is no such webhook');
  return { state, id };
}
