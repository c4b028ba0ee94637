import type { BrokeredCallResult } from '../../gateway-api/brokered/brokered-schemas.ts';
import type { RepositoryReadRequest } from '../../gateway-api/repositories/repository-api.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { assertDefinition, assertPermitted, attempted, markSession } from '../brokered/call.ts';
import type { CallShares } from '../shares/call-shares.ts';
import type { GatewayDeps } from '../deps.ts';
import type { AuthorizedDelivery } from '../delivery/authorize.ts';
import type { GitTool } from './port.ts';

export interface ReadForCallDeps
  extends Pick<
    GatewayDeps,
    'clock' | 'log' | 'directory' | 'sessions' | 'sessionsOf' | 'approvals' | 'recorder' | 'repositories' | 'draining'
  > {
  schemas: SchemaCompiler;
  /** Of reads in work, also when no client waits for them any more. */
  shares: CallShares;
}

export interface ReadForCall extends Omit<RepositoryReadRequest, 'deliveryToken'> {
  /** The idempotency key of the call. */
  key: string;
  disconnected: AbortSignal;
}

/** A server answers within this time, or not at all. */
const MAX_READ_MS = 60_000;

/**
 * Decides about the whole call, as the pod had to, and answers its question. Nothing changes, so a repeated request is answered again. Throws as
 * `callBrokeredTool`.
 */
export async function readForCall(
  delivery: AuthorizedDelivery,
  { question, ...call }: ReadForCall,
  deps: ReadForCallDeps,
): Promise<{ result: BrokeredCallResult; pack?: Buffer }> {
  const { claims } = delivery;
  const tool = assertDefinition(readingTool(deps.repositories.tool(claims.namespace, call.tool)), call);
  await assertPermitted(tool, delivery, call, deps);
  await markSession(tool, delivery, deps);
  const left = Math.min(call.timeoutMs, MAX_READ_MS, Date.parse(claims.deadline) - deps.clock.now().getTime());
  const op: CallOptions = {
    signal: AbortSignal.any([call.disconnected, deps.draining]),
    deadline: deps.clock.monotonic() + Math.max(1, left),
    key: `repository/${claims.agentUid}/${call.key}`,
  };
  const read = await attempted(tool.descriptor.name, op, deps, async (inner) => {
    using _share = deps.shares.take(claims);
    return await tool.read(question, call.input, delivery, inner);
  });
  if ('error' in read) return { result: read };
  await deps.recorder.used(claims, tool.descriptor.category);
  const { answer, pack } = read.value;
  return { result: { output: answer }, ...(pack === undefined ? {} : { pack }) };
}

type ReadingTool = GitTool & Required<Pick<GitTool, 'read'>>;

function readingTool(found: GitTool | undefined): ReadingTool | undefined {
  return found?.read === undefined ? undefined : { ...found, read: found.read };
}
