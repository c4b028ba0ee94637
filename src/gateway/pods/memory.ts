import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Memory } from '../../agent/ports.ts';
import { TemperError } from '../../lib/errors.ts';
import { FairQueue } from '../../lib/async/fair-queue.ts';
import type { Decider } from '../../policy/types.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import {
  MemoryDeleted,
  MemoryHits,
  MemoryKeys,
  MemoryKeysQuery,
  MemoryQuery,
  MemoryValue,
} from '../../gateway-api/session-schemas.ts';
import { memoryDelete, memoryList, memoryRead, memorySearch, memoryWrite } from '../delivery/carried-calls.ts';
import { signAnswer } from '../delivery/sign-answer.ts';
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
  body: MemoryValue,
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

type MemoryOf = (agent: { uid: string; namespace: string }) => Memory;
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
  const write = { access: 'pod', idempotent: true } as const;
  server.get(path, { config: CONFIG, schema: getSchema }, async (request, reply) => {
    const { key } = request.params;
    assertAllowed(deciderFor(request, deps), key, 'read');
    const value = await memoryOf(agentOf(request)).get(key);
    signAnswer(request, reply, memoryRead(key, value), deps);
    if (value === undefined) throw new TemperError('TEMPER_NOT_FOUND', 'no value is stored under this key');
    return { value };
  });
  server.put(path, { config: write, bodyLimit: MAX_BODY_BYTES, schema: putSchema }, async (request, reply) => {
    const { key } = request.params;
    assertAllowed(deciderFor(request, deps), key, 'write');
    await memoryOf(agentOf(request)).set(key, request.body.value);
    signAnswer(request, reply, memoryWrite(key, request.body.value), deps);
    return reply.code(204).send(null);
  });
  server.delete(path, { config: write, schema: deleteSchema }, async (request, reply) => {
    const { key } = request.params;
    assertAllowed(deciderFor(request, deps), key, 'write');
    const deleted = await memoryOf(agentOf(request)).delete(key);
    signAnswer(request, reply, memoryDelete(key, deleted), deps);
    return { deleted };
  });
}

/** Routes that read the whole memory of an agent, so this process makes one such call at a time, and namespaces take turns. */
function addScanRoutes(server: Server, deps: GatewayDeps, memoryOf: MemoryOf): void {
  const scans = new FairQueue();
  const config = { ...CONFIG, largeResponse: true };
  const scan = <T>(
    request: FastifyRequest,
    read: (memory: Memory, isReadable: IsReadable) => Promise<T>,
  ): Promise<T> => {
    const decider = deciderFor(request, deps);
    const isReadable: IsReadable = (key) => decider.decide({ kind: 'Memory', key, access: 'read' }).effect === 'Allow';
    return scans.run(request.pod.namespace, async () => {
      request.disconnected.throwIfAborted();
      return read(memoryOf(agentOf(request)), isReadable);
    });
  };
  server.get(POD_API_PATHS.memory, { config, schema: searchSchema }, async (request, reply) => {
    const { query, limit } = request.query;
    const found = await scan(request, (memory, isReadable) => memory.search(query, limit, isReadable));
    signAnswer(request, reply, memorySearch(query, limit, found), deps);
    request.holdResponse(Buffer.byteLength(JSON.stringify(found)));
    return found;
  });
  server.get(POD_API_PATHS.memoryKeys, { config, schema: keysSchema }, async (request, reply) => {
    const { prefix, limit } = request.query;
    const found = await scan(request, (memory, isReadable) => memory.list(prefix, limit, isReadable));
    signAnswer(request, reply, memoryList(prefix, limit, found), deps);
    request.holdResponse(Buffer.byteLength(JSON.stringify(found)));
    return found;
  });
}

function agentOf({ pod }: FastifyRequest): { uid: string; namespace: string } {
  return { uid: pod.agentUid, namespace: pod.namespace };
}

type IsReadable = (key: string) => boolean;

/** Assumes an untainted session: no rule about memory depends on taint. */
function deciderFor(request: FastifyRequest, { directory }: GatewayDeps): Decider {
  const state = directory.byUid(request.pod.agentUid);
  if (state === undefined) throw new TemperError('TEMPER_POD_NOT_BOUND', 'the agent of this pod no longer exists');
  return directory.decider(state, false);
}

function assertAllowed(decider: Decider, key: string, access: 'read' | 'write'): void {
  const decision = decider.decide({ kind: 'Memory', key, access });
  if (decision.effect === 'Allow') return;
  throw new TemperError('TEMPER_POLICY_DENIED', decision.reason, { details: { rule: decision.rule } });
}
