import type { UsableCapability } from '../../capabilities/assess.ts';
import { brokeredDescriptor } from '../../capabilities/assess-namespace.ts';
import type { BrokeredCapability } from '../../capabilities/capability-object.ts';
import { authoritiesOf } from '../../connections/authorities.ts';
import { exchange, HTTP_TOOL_FETCH } from '../../gateway/capabilities/http-tool.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { HostToolDeps } from '../../standalone/team/host-tools.ts';
import type { CallContext, Tool } from '../../tools/contract.ts';
import { peerRequests } from './peer-requests.ts';
import { credentialOf, rulesOf, type TokenOf } from './reach-host.ts';
import type { UserConnection } from './read-connections.ts';

/** A connection of the user, as the rules of Capabilities read it. A private host is reachable from this machine. */
export interface UsableTarget {
  name: string;
  hosts: string[];
  namespaces: string[];
  own: UserConnection;
}

export interface UsableInRun {
  capability: BrokeredCapability;
  usable: UsableCapability<UsableTarget>;
}

/** The headers of the SDK for agents elsewhere. */
const A2A_HEADERS = ['a2a-version'];

/** The tool of a Capability, executed by this process. */
export function hostTool({ capability, usable }: UsableInRun, token: TokenOf, deps: HostToolDeps): Tool {
  const { tool } = capability;
  const descriptor = { ...brokeredDescriptor(capability), hosts: [usable.url.host] };
  const { outputSchema } = descriptor;
  const call = capability.backend.a2a === undefined ? callHttp : callPeer;
  return {
    descriptor,
    async call(input: Json, context: CallContext) {
      if (!isJsonObject(input)) throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `"${tool.name}" takes an object`);
      const output = await call({ capability, usable }, input, { token, context, ...deps });
      const [problem] = outputSchema === undefined ? [] : deps.schemas.check(outputSchema)(output);
      if (problem === undefined) return output;
      throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', `the output of "${tool.name}" breaks its schema: ${problem}`);
    },
  };
}

type HostCallDeps = HostToolDeps & { token: TokenOf; context: CallContext };

async function callHttp(target: UsableInRun, input: JsonObject, deps: HostCallDeps): Promise<Json> {
  const { tool, backend } = target.capability;
  const { url, connection } = target.usable;
  if (backend.http === undefined) throw new TypeError(`${tool.name} has no backend`);
  const { credential, fetch, rules } = await reached(target, deps);
  const endpoint = { name: tool.name, backend: backend.http, url, connection };
  return exchange(endpoint, input, credential, (request) => fetch(request, rules, deps.context.op));
}

/** Loads the SDK of A2A only for a call. */
async function callPeer(target: UsableInRun, input: JsonObject, deps: HostCallDeps): Promise<Json> {
  const { tool, backend } = target.capability;
  const { url, connection } = target.usable;
  const { name } = tool;
  const { op } = deps.context;
  if (backend.a2a === undefined) throw new TypeError(`${name} has no backend`);
  const { askPeer } = await import('../../a2a/client/ask-peer.ts');
  const over = await reached(target, deps, { headers: A2A_HEADERS, timeLimit: 'Call' });
  const requests = peerRequests({ name, url, connection, op, ...over });
  return askPeer({ name, backend: backend.a2a, url }, input, { clock: systemClock, requests }, op);
}

/** How the requests of one call reach the host: with the credential of its connection, and to no other host. */
async function reached(
  { usable: { url, connection } }: UsableInRun,
  { token, context, decide, ...deps }: HostCallDeps,
  { headers = [], ...limits }: { headers?: readonly string[]; timeLimit?: 'Call' } = {},
) {
  const credential = credentialOf(connection?.own, token);
  const certificateAuthorities = await authoritiesOf(connection?.own);
  const fetch = deps.fetchWith({
    ...HTTP_TOOL_FETCH,
    ...limits,
    ...(certificateAuthorities === undefined ? {} : { certificateAuthorities }),
    sentHeaders: new Set([...headers, ...Object.keys(credential.headers)]),
  });
  return { credential, fetch, rules: rulesOf(url, connection?.own, decide, context) };
}
