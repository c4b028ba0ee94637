import { isFromHost } from '../../agent/loop/taint-tracker.ts';
import { originOfTool } from '../../agent/history/origins.ts';
import type { BrokeredCallRequest, BrokeredCallResult } from '../../gateway-api/brokered/brokered-schemas.ts';
import { abortable } from '../../lib/async/abort.ts';
import { digestOf, sha256 } from '../../lib/canonical.ts';
import { abortedByTimeout, type CallOptions, withTimeout } from '../../lib/call-options.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { isPrivateSource } from '../../policy/private-data/sources.ts';
import { isUntrustedSource } from '../../policy/untrusted-source.ts';
import { assertInput } from '../../tools/input-check.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { GatewayDeps } from '../deps.ts';
import type { AuthorizedDelivery } from '../delivery/authorize.ts';
import { assertBrokeredCall } from '../delivery/brokered-call.ts';
import type { MinuteCounts } from '../http/limits/minute-counts.ts';
import { recorded, unknownOutcome } from './call-records.ts';
import type { CallShares } from '../shares/call-shares.ts';
import type { BrokeredTool } from './port.ts';
import type { RecentCalls } from './recent-calls.ts';

export interface BrokeredCallDeps
  extends Pick<
    GatewayDeps,
    | 'clock'
    | 'log'
    | 'metrics'
    | 'directory'
    | 'sessions'
    | 'sessionsOf'
    | 'approvals'
    | 'audit'
    | 'recorder'
    | 'brokered'
    | 'draining'
  > {
  shares: CallShares;
  /** Of calls with an attachment, also when no client waits for them any more. */
  attachments: CallShares;
  callsInMinute: MinuteCounts;
  recent: RecentCalls<BrokeredCallResult>;
  schemas: SchemaCompiler;
}

/** One request of a pod. */
export interface RequestedCall extends Pick<BrokeredCallRequest, 'tool' | 'definition' | 'input' | 'timeoutMs'> {
  /** The idempotency key. */
  key: string;
  /** What the pod sent beside the arguments. */
  attachment?: Buffer;
  /** An earlier request with the key got no answer. */
  isUnanswered: boolean;
  disconnected: AbortSignal;
}

/** A call does not take a gateway for longer. */
const MAX_CALL_MS = 10 * 60_000;
/** A model reads the output. */
const MAX_CHARACTERS = 1_000_000;
const MAX_MESSAGE = 2_000;

/**
 * Decides about a call as the pod had to, and executes it once per key. The failure of an executed call is its result. Throws
 * TEMPER_TOOL_NOT_FOUND, TEMPER_TOOL_INPUT_INVALID, TEMPER_POLICY_DENIED, TEMPER_QUOTA_EXCEEDED,
 * TEMPER_RATE_LIMITED, TEMPER_TOOL_OUTCOME_UNKNOWN for a tool with side effects that another request may have called, and TEMPER_BUS_*.
 */
export async function callBrokeredTool(
  delivery: AuthorizedDelivery,
  call: RequestedCall,
  deps: BrokeredCallDeps,
): Promise<{ tool: BrokeredTool; result: BrokeredCallResult }> {
  const tool = assertDefinition(deps.brokered.find(delivery.claims.namespace, call.tool), call);
  const { claims } = delivery;
  const key = `${claims.agentUid}/${claims.message}/${call.key}`;
  if (call.isUnanswered && tool.descriptor.sideEffects && !deps.recent.has(key)) throw unknownOutcome(tool);
  const { attachment } = call;
  const sent = attachment === undefined ? {} : { attachment: sha256(attachment) };
  const question = digestOf({ tool: tool.definition, input: call.input, ...sent });
  const result = await deps.recent.once(key, question, call.disconnected, async (cancelled) => {
    const value = await admitted(tool, delivery, call, cancelled, deps);
    return { value, size: JSON.stringify(value).length };
  });
  return { tool, result };
}

/** The tool with the definition that the pod has. A digest of another one: its name stands for something else now. */
export function assertDefinition<T extends Pick<BrokeredTool, 'definition'>>(
  found: T | undefined,
  { tool: name, definition }: Pick<RequestedCall, 'tool' | 'definition'>,
): T {
  if (found?.definition === definition) return found;
  const what = found === undefined ? 'no tool of this gateway is named so' : 'its definition has changed';
  throw new TemperError('TEMPER_TOOL_NOT_FOUND', `"${printable(name, 80)}": ${what}; use a listed tool`);
}

/** Checks everything that the pod had to check before the call, takes the share and the quota, and executes. */
async function admitted(
  tool: BrokeredTool,
  delivery: AuthorizedDelivery,
  call: RequestedCall,
  cancelled: AbortSignal,
  deps: BrokeredCallDeps,
): Promise<BrokeredCallResult> {
  const { key, timeoutMs } = call;
  const { claims } = delivery;
  await assertPermitted(tool, delivery, call, deps);
  using _share = deps.shares.take(claims);
  using _attachment = call.attachment === undefined ? undefined : deps.attachments.take(claims);
  count(delivery, deps);
  const left = Math.min(timeoutMs, MAX_CALL_MS, Date.parse(claims.deadline) - deps.clock.now().getTime());
  const op: CallOptions = {
    signal: AbortSignal.any([cancelled, deps.draining]),
    deadline: deps.clock.monotonic() + Math.max(1, left),
    key: `brokered/${claims.agentUid}/${key}`,
  };
  await markSession(tool, delivery, deps);
  return await recorded(tool, delivery, call, () => executed(tool, delivery, call, op, deps), deps);
}

/** The checks that the pod had to make before the call. */
export async function assertPermitted(
  tool: Pick<BrokeredTool, 'descriptor' | 'requests'>,
  delivery: AuthorizedDelivery,
  { input, key }: Pick<RequestedCall, 'input' | 'key'>,
  deps: Pick<BrokeredCallDeps, 'schemas' | 'directory' | 'sessions' | 'approvals'>,
): Promise<void> {
  assertInput(deps.schemas, tool.descriptor, input);
  const requests = tool.requests(input);
  await assertBrokeredCall(delivery, { tool: tool.descriptor, input, requests, digests: [digestOf(input)], key }, deps);
}

/** The pod counts the calls of all tools; a pod that does not count cannot have more than its quota executed here. */
function count({ state }: AuthorizedDelivery, { callsInMinute }: BrokeredCallDeps): void {
  const quota = state.agent.spec.quotas?.toolCallsPerMinute;
  if (quota === undefined || callsInMinute.add(state.uid) <= quota) return;
  const message = `${quota} calls in a minute, as spec.quotas.toolCallsPerMinute of the agent permits, were executed by this gateway`;
  throw new TemperError('TEMPER_QUOTA_EXCEEDED', message);
}

/** Before the pod gets anything of the answer, also of an error: the gateway does not depend on what the pod says about its session. */
export async function markSession(
  { descriptor }: Pick<BrokeredTool, 'descriptor'>,
  { claims: { agentUid, session }, state }: AuthorizedDelivery,
  { sessions, sessionsOf }: Pick<BrokeredCallDeps, 'sessions' | 'sessionsOf'>,
): Promise<void> {
  const origin = originOfTool(descriptor);
  const policy = state.policy?.spec ?? {};
  const isUntrusted = isFromHost(origin) || isUntrustedSource(origin, policy);
  const isPrivate = isPrivateSource(origin, policy);
  if (!isUntrusted && !isPrivate) return;
  const known = await sessions.marks(agentUid, session);
  if (isUntrusted && !known.tainted) await sessionsOf(agentUid).taint(session);
  if (isPrivate && !known.hasPrivateData) await sessionsOf(agentUid).markPrivate(session);
}

async function executed(
  tool: BrokeredTool,
  delivery: AuthorizedDelivery,
  { input, attachment }: RequestedCall,
  op: CallOptions,
  deps: BrokeredCallDeps,
): Promise<BrokeredCallResult> {
  const { name } = tool.descriptor;
  const work = (inner: CallOptions): Promise<Json> => tool.execute(input, delivery, inner, attachment);
  const result = await attempted(name, op, deps, async (inner) => checkedOutput(tool, await work(inner), deps.schemas));
  return 'error' in result ? result : { output: result.value };
}

type CallFailure = Extract<BrokeredCallResult, { error: unknown }>;

/** The result of the work in the time of the call. A failure is a value: it is no error of the request, which would be repeated. */
export async function attempted<T>(
  name: string,
  op: CallOptions,
  { clock, log }: Pick<BrokeredCallDeps, 'clock' | 'log'>,
  work: (inner: CallOptions) => Promise<T>,
): Promise<{ value: T } | CallFailure> {
  const left = Math.max(1, op.deadline - clock.monotonic());
  try {
    const value = await withTimeout(op, clock, left, (inner) =>
      abortable(work(inner), inner.signal, () => ended(name, inner.signal)),
    );
    return { value };
  } catch (error) {
    if (isTemperError(error)) return { error: { code: error.code, message: printable(error.message, MAX_MESSAGE) } };
    log.error({ error, tool: name }, 'a brokered tool failed');
    return { error: { code: 'TEMPER_TOOL_FAILED', message: `"${name}" failed: ${printable(messageOf(error), 300)}` } };
  }
}

function ended(name: string, signal: AbortSignal): TemperError {
  return abortedByTimeout(signal)
    ? new TemperError('TEMPER_TOOL_TIMEOUT', `"${name}" did not answer in time and was stopped`)
    : new TemperError('TEMPER_CANCELLED', `the call of "${name}" was cancelled`);
}

function checkedOutput(
  { descriptor: { name, outputSchema } }: BrokeredTool,
  output: Json,
  schemas: SchemaCompiler,
): Json {
  const size = JSON.stringify(output).length;
  if (size > MAX_CHARACTERS) {
    const message = `the output of "${name}" has ${size} characters, and ${MAX_CHARACTERS} are read; ask for less`;
    throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', message);
  }
  const [problem] = outputSchema === undefined ? [] : schemas.check(outputSchema)(output);
  if (problem === undefined) return output;
  throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', `the output of "${name}" breaks its schema: ${problem}`);
}
