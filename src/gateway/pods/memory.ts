import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Memory } from '../../agent/ports.ts';
import { isUntrustedEntry } from '../../agent/tools/memory-access.ts';
import { TemperError } from '../../lib/errors.ts';
import { isPrivateContent } from '../../policy/private-data/sources.ts';
import type { Decision } from '../../policy/types.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import {
  MemoryDeleted,
  MemoryHits,
  MemoryKeys,
  MemoryKeysQuery,
  MemoryQuery,
  MemoryValue,
  MemoryWrite,
} from '../../gateway-api/session-schemas.ts';
import { memoryDelete, memoryList, memoryRead, memorySearch, memoryWrite } from '../delivery/carried-calls.ts';
import { signFor } from '../delivery/sign-answer.ts';
import { type AuthorizedDelivery, authorizeHeader } from '../delivery/authorize.ts';
import type { GatewayDeps } from '../deps.ts';
import type { RouteModule } from '../http/routes.ts';
import { Done, ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';

/** Enough for a value of 65,536 characters with each character escaped. */
const MAX_BODY_BYTES = 512 * 1_024;
const Params = Type.Object({ key: Type.String({ minLength: 1, maxLength: 256 }) });
const getSchema = {
  ...POD_SECURITY,
  params: Params,
  summary: 'A stored value',
  response: { 200: MemoryValue, ...ERROR_RESPONSES },
};
const putSchema = {
  ...POD_SECURITY,
  params: Params,
  body: MemoryWrite,
  summary: 'Stores a value',
  response: { 204: Done, ...ERROR_RESPONSES },
};
const deleteSchema = {
  ...POD_SECURITY,
  params: Params,
  summary: 'Deletes a value',
  response: { 200: MemoryDeleted, ...ERROR_RESPONSES },
};
const keysSchema = {
  ...POD_SECURITY,
  querystring: MemoryKeysQuery,
  summary: 'Keys that start with a prefix',
  response: { 200: MemoryKeys, ...ERROR_RESPONSES },
};
const searchSchema = {
  ...POD_SECURITY,
  querystring: MemoryQuery,
  summary: 'Values that match a query, best first',
  response: { 200: MemoryHits, ...ERROR_RESPONSES },
};

/** Searches of the memory end with the signal. */
type MemoryOf = (agent: { uid: string; namespace: string }, signal: AbortSignal) => Memory;
type Server = Parameters<RouteModule>[0];
const CONFIG = { access: 'pod' } as const;

/** Memory of agents beyond sessions, within their grants. */
export function memoryRoutes(memoryOf: MemoryOf): RouteModule {
  return (server, deps) => {
    addValueRoutes(server, deps, memoryOf);
    addScanRoutes(server, deps, memoryOf);
  };
}

/** Routes of one key. */
function addValueRoutes(server: Server, deps: GatewayDeps, memoryOf: MemoryOf): void {
  const path = `${POD_API_PATHS.memory}/:key`;
  const memoryIn = (request: FastifyRequest): Memory => memoryOf(agentOf(request), request.disconnected);
  const write = { access: 'pod', idempotent: true, writesStorage: true } as const;
  server.get(path, { config: CONFIG, schema: getSchema }, async (request, reply) => {
    const { key } = request.params;
    const delivery = authorizeHeader(request, deps);
    assertReadable(delivery, key, deps);
    const found = await memoryIn(request).get(key);
    if (found !== undefined) await markByRead(delivery, isUntrustedEntry({ key, ...found }), deps);
    if (!isContext(delivery, key)) await deps.recorder.used(delivery.claims, 'memory');
    signFor(delivery.claims, reply, memoryRead(key, found?.value), deps);
    if (found === undefined) throw new TemperError('TEMPER_NOT_FOUND', 'no value is stored under this key');
    return found;
  });
  server.put(path, { config: write, bodyLimit: MAX_BODY_BYTES, schema: putSchema }, async (request, reply) => {
    const { key } = request.params;
    const { value } = request.body;
    const delivery = authorizeHeader(request, deps);
    const tainted = (await assertWritable(delivery, key, deps)) || request.body.tainted === true;
    await memoryIn(request).set(key, value, { tainted });
    await deps.recorder.used(delivery.claims, 'memory');
    signFor(delivery.claims, reply, memoryWrite(key, value), deps);
    return reply.code(204).send(null);
  });
  server.delete(path, { config: write, schema: deleteSchema }, async (request, reply) => {
    const { key } = request.params;
    const delivery = authorizeHeader(request, deps);
    await assertWritable(delivery, key, deps);
    const deleted = await memoryIn(request).delete(key);
    await deps.recorder.used(delivery.claims, 'memory');
    signFor(delivery.claims, reply, memoryDelete(key, deleted), deps);
    return { deleted };
  });
}

/** Routes that read the whole memory of an agent. */
function addScanRoutes(server: Server, deps: GatewayDeps, memoryOf: MemoryOf): void {
  const config = { ...CONFIG, largeResponse: true };
  const scan = <T>(
    request: FastifyRequest,
    { state }: AuthorizedDelivery,
    read: (memory: Memory, isReadable: IsReadable) => Promise<T>,
  ): Promise<T> => {
    // No rule about reading depends on taint.
    const decider = deps.directory.decider(state, false);
    const isReadable: IsReadable = (key) => decider.decide({ kind: 'Memory', key, access: 'read' }).effect === 'Allow';
    return read(memoryOf(agentOf(request), request.disconnected), isReadable);
  };
  server.get(POD_API_PATHS.memory, { config, schema: searchSchema }, async (request, reply) => {
    const { query, limit } = request.query;
    const delivery = authorizeHeader(request, deps);
    const found = await scan(request, delivery, (memory, isReadable) => memory.search(query, limit, isReadable));
    if (found.length > 0) await markByRead(delivery, found.some(isUntrustedEntry), deps);
    await deps.recorder.used(delivery.claims, 'memory');
    signFor(delivery.claims, reply, memorySearch(query, limit, found), deps);
    request.holdResponse(Buffer.byteLength(JSON.stringify(found)));
    return found;
  });
  server.get(POD_API_PATHS.memoryKeys, { config, schema: keysSchema }, async (request, reply) => {
    const { prefix, limit } = request.query;
    const delivery = authorizeHeader(request, deps);
    const found = await scan(request, delivery, (memory, isReadable) => memory.list(prefix, limit, isReadable));
    const { tainted } = found;
    const isUntrusted = found.keys.some((key) => isUntrustedEntry({ key, tainted }));
    if (found.keys.length > 0) await markByRead(delivery, isUntrusted, deps);
    await deps.recorder.used(delivery.claims, 'memory');
    signFor(delivery.claims, reply, memoryList(prefix, limit, found), deps);
    request.holdResponse(Buffer.byteLength(JSON.stringify(found)));
    return found;
  });
}

function agentOf({ pod }: FastifyRequest): { uid: string; namespace: string } {
  return { uid: pod.agentUid, namespace: pod.namespace };
}

/** The pod reads these values at the start of each message, whatever the agent calls. */
function isContext({ state }: AuthorizedDelivery, key: string): boolean {
  return state.agent.spec.prompt.context?.memory?.includes(key) === true;
}

type IsReadable = (key: string) => boolean;

function assertReadable({ state }: AuthorizedDelivery, key: string, { directory }: GatewayDeps): void {
  assertAllowed(directory.decider(state, false).decide({ kind: 'Memory', key, access: 'read' }));
}

/** Returns whether the session has untrusted content, which the value then carries. */
async function assertWritable(
  { claims, state }: AuthorizedDelivery,
  key: string,
  { directory, sessions }: GatewayDeps,
): Promise<boolean> {
  const request = { kind: 'Memory', key, access: 'write' } as const;
  assertAllowed(directory.decider(state, false).decide(request));
  const tainted = await sessions.tainted(claims.agentUid, claims.session);
  if (tainted) assertAllowed(directory.decider(state, true).decide(request));
  return tainted;
}

function assertAllowed({ effect, reason, rule }: Decision): void {
  if (effect !== 'Allow') throw new TemperError('TEMPER_POLICY_DENIED', reason, { details: { rule } });
}

/** Before the pod gets the answer, so that the gateway does not depend on what the pod says about its session. */
async function markByRead(
  { claims: { agentUid, session }, state }: AuthorizedDelivery,
  isUntrusted: boolean,
  { sessionsOf }: GatewayDeps,
): Promise<void> {
  const sessions = sessionsOf(agentUid);
  const content = { source: 'Memory', tainted: isUntrusted };
  if (isPrivateContent(content, state.policy?.spec ?? {})) await sessions.markPrivate(session);
  if (isUntrusted) await sessions.taint(session);
}
