import { randomBytes } from 'node:crypto';
import { triggersOf } from '../../api/schedule/triggers.ts';
import { isSigned, parseWebhookHeaders, type WebhookHeaders } from '../../events/webhook-signature.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { AgentState } from '../agent-state.ts';
import type { AgentDirectory } from '../deps.ts';
import type { WebhookKeys } from './keys.ts';

export interface WebhookPath {
  readonly namespace: string;
  readonly agent: string;
  readonly trigger: string;
}

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

const DEFAULT_TOLERANCE_SECONDS = 300;

/**
 * Throws TEMPER_NOT_FOUND, the same for an unknown agent, a trigger without a webhook or a key, a wrong signature, and a time that is too far
 * away. A path without keys costs one comparison too.
 */
export function verifyWebhook(
  path: WebhookPath,
  headers: Parameters<typeof parseWebhookHeaders>[0],
  body: string,
  { directory, keys, clock }: VerifyDeps,
): VerifiedWebhook {
  const state = directory.agent(path.namespace, path.agent);
  const trigger = triggersOf(state?.agent.spec ?? {}).find(({ name }) => name === path.trigger);
  const known = trigger?.webhook === undefined ? [] : keys.of(path.namespace, path.agent, path.trigger);
  const parsed = parseWebhookHeaders(headers);
  const isGenuine = parsed !== undefined && isSigned(known.length > 0 ? known : [randomBytes(32)], parsed, body);
  const { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = trigger?.webhook ?? {};
  if (state === undefined || !isGenuine || known.length === 0 || !isRecent(parsed, toleranceSeconds, clock)) {
    throw new TemperError('TEMPER_NOT_FOUND', 'there is no such webhook, or the request has no valid signature');
  }
  return { state, id: parsed.id };
}

function isRecent({ timestamp }: WebhookHeaders, toleranceSeconds: number, clock: Clock): boolean {
  return Math.abs(clock.now().getTime() / 1_000 - timestamp) <= toleranceSeconds;
}
