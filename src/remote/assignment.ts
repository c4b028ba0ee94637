import type { Op } from '../lib/operation.ts';
import { type Json, type JsonObject, member } from '../lib/json.ts';
import type { GatewayClient } from './gateway-client.ts';
import { objectIn, textIn } from './reading.ts';
import { type Assignment, PATHS } from './wire.ts';

/** Milliseconds a long poll may take beyond the requested wait. */
export const POLL_SLACK = 15_000;

/** The assignment of this pod, when its version differs from `known`; undefined when nothing changed within the wait. */
export async function nextAssignment(
  client: GatewayClient,
  known: string | undefined,
  waitSeconds: number,
  op: Op,
): Promise<Assignment | undefined> {
  const answer = await client.call({
    method: 'GET',
    path: PATHS.assignment,
    query: { wait: String(waitSeconds), ...(known === undefined ? {} : { version: known }) },
    op,
    patience: waitSeconds * 1_000 + POLL_SLACK,
  });
  return answer === undefined ? undefined : assignmentIn(answer);
}

/** Checks only the members that every caller reads; the API server validated the specs. */
function assignmentIn(answer: Json): Assignment {
  const value = objectIn(answer, 'assignment');
  const agent = objectIn(value['agent'], 'agent');
  const policy = objectIn(value['policy'], 'policy');
  objectIn(agent['spec'], 'agent.spec');
  objectIn(policy['spec'], 'policy.spec');
  for (const key of ['name', 'namespace', 'uid']) textIn(agent, key, 'agent');
  textIn(policy, 'name', 'policy');
  textIn(value, 'version', 'assignment');
  textIn(value, 'level', 'assignment');
  modelsIn(objectIn(value['models'], 'models'));
  return value as unknown as Assignment;
}

function modelsIn(models: JsonObject): void {
  for (const [name, model] of Object.entries(models)) {
    const resolved = member(model, 'resolved');
    const contextTokens = member(model, 'contextTokens');
    if (typeof resolved !== 'string' || typeof contextTokens !== 'number') objectIn(undefined, `models.${name}`);
  }
}
