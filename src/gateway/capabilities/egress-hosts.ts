import type { Socket } from 'node:net';
import type { Connection } from '../../connections/connection.ts';
import { DELIVERY_TOKEN_HEADER } from '../../gateway-api/pod-api.ts';
import type { EgressEndpoint, EgressEndpoints } from '../../gateway-client/endpoints/egress-endpoints.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { connectThroughProxy } from '../../net/proxied-connection.ts';
import type { Target, TargetRules } from '../../net/targets.ts';
import type { CallingMessage } from '../brokered/port.ts';
import type { DeliveryTokens } from '../delivery/token.ts';

export interface EgressHostsDeps {
  /** The address of the egress proxy, and the token of this gateway for it. */
  files: Pick<EgressEndpoints, 'current'>;
  deliveryTokens: Pick<DeliveryTokens, 'sign'>;
}

/** The hosts that the calls of one Capability may reach. */
export interface ReachableHosts {
  readonly rules: TargetRules;
  /** Opens a TLS connection through the egress proxy, for the message of a delivery. */
  connect(
    delivery: CallingMessage,
    authorities: readonly string[] | undefined,
  ): (target: Target, signal: AbortSignal) => Promise<Socket>;
}

/**
 * Each connection has a token of its own, for one host and for the message of the call: the proxy charges it to the agent, and it ends with
 * the message, or when the agent is suspended. Without a Connection the policy of the agent decides about the host, now and while it is open.
 */
export function reachableHosts(
  url: URL,
  connection: Pick<Connection, 'hosts'> | undefined,
  { files, deliveryTokens }: EgressHostsDeps,
): ReachableHosts {
  const hosts = connection?.hosts ?? [`${url.hostname}:${portOf(url)}`];
  const ports = hosts.map((host) => Number(host.slice(host.lastIndexOf(':') + 1)));
  const by = connection === undefined ? 'Policy' : 'Connection';
  return {
    rules: {
      ports,
      hostDenialReason: (host, port) =>
        hosts.includes(`${host}:${port}`) ? undefined : 'it is not a host of the capability',
    },
    connect:
      ({ claims }, authorities) =>
      async (target, signal) => {
        const proxy = await endpointOf(files);
        const token = deliveryTokens.sign({ ...claims, connects: { host: target.host, port: target.port, by } });
        const headers = { [DELIVERY_TOKEN_HEADER]: token };
        return connectThroughProxy(target, { proxy, headers, trust: authorities ?? proxy.targetTrust }, signal);
      },
  };
}

export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'http:' ? 80 : 443;
}

async function endpointOf(files: EgressHostsDeps['files']): Promise<EgressEndpoint> {
  try {
    return await files.current();
  } catch (cause) {
    if (!isTemperError(cause)) throw cause;
    throw new TemperError('TEMPER_EGRESS_UNAVAILABLE', 'the address of the egress proxy cannot be read', { cause });
  }
}
