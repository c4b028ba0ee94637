import type { BrokeredCallResult } from '../../gateway-api/brokered/brokered-schemas.ts';
import { tryDigestOf } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { GatewayDeps } from '../deps.ts';
import type { AuthorizedDelivery } from '../delivery/authorize.ts';
import type { BrokeredTool } from './port.ts';

export type CallRecordDeps = Pick<GatewayDeps, 'audit' | 'clock' | 'log' | 'metrics' | 'recorder'>;

/** What the records of a call depend on. */
export interface KeyedCall {
  /** The idempotency key. */
  key: string;
  input: Json;
}

/**
 * Executes a call and records what the gateway observed of it, without arguments and output.
 *
 * A call with side effects is recorded before it starts, once per key in all gateways: without the record it does not start, and a gateway
 * that finds the record of another request does not know whether that one had its effect. So the answer of such a call does not depend on
 * the record of its result. A call without side effects has one record, and its answer does depend on it.
 *
 * Throws TEMPER_TOOL_OUTCOME_UNKNOWN and TEMPER_BUS_*.
 */
export async function recorded(
  tool: BrokeredTool,
  delivery: AuthorizedDelivery,
  call: KeyedCall,
  execute: () => Promise<BrokeredCallResult>,
  deps: CallRecordDeps,
): Promise<BrokeredCallResult> {
  const { clock, metrics, log } = deps;
  const { sideEffects, name, category } = tool.descriptor;
  if (sideEffects) await recordStart(tool, delivery, call, deps);
  const started = clock.monotonic();
  const result = await execute();
  const milliseconds = clock.monotonic() - started;
  const outcome = 'error' in result ? result.error.code : 'ok';
  metrics.count('temper_brokered_calls_total', { outcome });
  metrics.observe('temper_brokered_call_duration_seconds', {}, milliseconds / 1_000);
  try {
    await recordResult(tool, delivery, call, { milliseconds: Math.round(milliseconds), outcome }, deps);
  } catch (error) {
    if (!sideEffects) throw error;
    const { namespace, agent, message } = delivery.claims;
    metrics.count('temper_brokered_results_unrecorded_total', {});
    log.error({ error, namespace, agent, message, tool: name, outcome }, 'the result of a call could not be recorded');
  }
  if ('output' in result) await deps.recorder.used(delivery.claims, category);
  return result;
}

async function recordStart(
  tool: BrokeredTool,
  delivery: AuthorizedDelivery,
  call: KeyedCall,
  { audit }: CallRecordDeps,
): Promise<void> {
  const record = { ...recordOf(tool, delivery), action: 'tool.call-started', facts: factsOf(tool, delivery, call) };
  const isFirst = await audit.appendFirst(delivery.claims, record, `started/${keyOf(delivery, call)}`);
  if (!isFirst) throw unknownOutcome(tool);
}

async function recordResult(
  tool: BrokeredTool,
  delivery: AuthorizedDelivery,
  call: KeyedCall,
  result: { milliseconds: number; outcome: string },
  { audit }: CallRecordDeps,
): Promise<void> {
  const facts = { ...factsOf(tool, delivery, call), ...result };
  const record = { ...recordOf(tool, delivery), action: 'tool.brokered', facts };
  await audit.append(delivery.claims, record, keyOf(delivery, call));
}

function recordOf({ descriptor }: BrokeredTool, { claims: { agent } }: AuthorizedDelivery) {
  return { actor: `agent/${agent}`, evidence: 'observed', subject: descriptor.name } as const;
}

function factsOf({ definition }: BrokeredTool, { claims }: AuthorizedDelivery, { input }: KeyedCall): JsonObject {
  const { agentUid, session, root, message } = claims;
  return { agentUid, session, rootMessage: root, message, definition, inputDigest: tryDigestOf(input) ?? 'none' };
}

function keyOf({ claims: { agentUid, message } }: AuthorizedDelivery, { key }: KeyedCall): string {
  return `brokered/${agentUid}/${message}/${key}`;
}

/** Of a call with side effects that another request may have executed. */
export function unknownOutcome({ descriptor: { name } }: BrokeredTool): TemperError {
  const message = `an earlier request for this call of "${name}" got no answer, and the call may have had its effect; check that before you call it again`;
  return new TemperError('TEMPER_TOOL_OUTCOME_UNKNOWN', message);
}
