import type { CallOptions } from '../lib/call-options.ts';
import { type Json, type JsonObject, member } from '../lib/json.ts';
import type { GatewayClient } from './gateway-client.ts';
import { requireObject, requireText } from '../gateway-api/response-parsing.ts';
import { type Assignment, POD_API_PATHS } from '../gateway-api/pod-api.ts';

/**
 * How long a request of a pod waits in the gateway. The shorter it is, the more processor time pods without work cost: each end of a poll
 * takes the gateway two to four milliseconds. The longer it is, the later a pod notices that its gateway is gone without a sign.
 */
export const POLL_SECONDS = 50;
/** Milliseconds a long poll may take beyond the requested wait. */
export const POLL_GRACE_MS = 15_000;

/** The assignment of this pod, when its version differs from `known`; undefined when nothing changed within the wait. */
export async function fetchAssignment(
  client: Pick<GatewayClient, 'call'>,
  known: string | undefined,
  waitSeconds: number,
  op: CallOptions,
): Promise<Assignment | undefined> {
  const answer = await client.call({
    method: 'GET',
    path: POD_API_PATHS.assignment,
    query: { wait: String(waitSeconds), ...(known === undefined ? {} : { version: known }) },
    op,
    timeoutMs: waitSeconds * 1_000 + POLL_GRACE_MS,
  });
  return answer === undefined ? undefined : assignmentIn(answer);
}

/** Checks only the members that every caller reads; the API server validated the specs. */
export function assignmentIn(answer: Json): Assignment {
  const value = requireObject(answer, 'assignment');
  const agent = requireObject(value['agent'], 'agent');
  const policy = requireObject(value['policy'], 'policy');
  requireObject(agent['spec'], 'agent.spec');
  requireObject(policy['spec'], 'policy.spec');
  for (const key of ['name', 'namespace', 'uid']) requireText(agent, key, 'agent');
  requireText(policy, 'name', 'policy');
  requireText(value, 'version', 'assignment');
  requireText(value, 'level', 'assignment');
  modelsIn(requireObject(value['models'], 'models'));
  return value as unknown as Assignment;
}

function modelsIn(models: JsonObject): void {
  for (const [name, model] of Object.entries(models)) {
    const resolved = member(model, 'resolved');
    const contextTokens = member(model, 'contextTokens');
    if (typeof resolved !== 'string' || typeof contextTokens !== 'number') requireObject(undefined, `models.${name}`);
  }
}
