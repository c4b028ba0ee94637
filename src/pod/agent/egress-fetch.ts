/** The `fetch` of forged tools in a pod: every connection is a tunnel through the egress proxy, which decides about it. */
import type { Socket } from 'node:net';
import { getCACertificates } from 'node:tls';
import type { GatewayConfigFiles, GatewayEndpoint } from '../../gateway-client/gateway-config-files.ts';
import { DELIVERY_TOKEN_HEADER } from '../../gateway-api/pod-api.ts';
import type { Clock } from '../../lib/clock.ts';
import { isErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { type Json, member, parseUntrustedJson } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { secure } from '../../net/dialer.ts';
import { createSafeFetch, type SafeFetch } from '../../net/fetch.ts';
import type { Target } from '../../net/targets.ts';
import { openTunnel } from '../../net/tunnel.ts';

export interface EgressFetchDeps {
  /** The address of the proxy, and the token of the pod for it. */
  files: Pick<GatewayConfigFiles, 'current'>;
  /** Of the current message: the proxy charges the connection to it. */
  deliveryToken: () => string;
  clock: Clock;
}

/** The decision of the gateway, the resolution of the name and the connection, together. */
const TUNNEL_TIMEOUT_MS = 15_000;
const TLS_TIMEOUT_MS = 5_000;
const MAX_MESSAGE_CHARACTERS = 1_000;

export function egressFetch(deps: EgressFetchDeps): SafeFetch {
  const { clock } = deps;
  return createSafeFetch({ clock, connect: (target, signal) => connectThroughProxy(target, deps, signal) });
}

async function connectThroughProxy(target: Target, deps: EgressFetchDeps, signal: AbortSignal): Promise<Socket> {
  if (!target.isHttps) throw new TemperError('TEMPER_FETCH_DENIED', 'a tool reaches only https URLs');
  const proxy = await endpointOf(deps);
  const { hostname } = target.url;
  const tunnel = {
    proxy,
    authority: `${hostname}:${target.port}`,
    headers: { 'proxy-authorization': `Bearer ${proxy.token}`, [DELIVERY_TOKEN_HEADER]: deps.deliveryToken() },
  };
  const opening = AbortSignal.any([signal, AbortSignal.timeout(TUNNEL_TIMEOUT_MS)]);
  const opened = await openTunnel(tunnel, opening).catch((error: unknown) => {
    throw signal.aborted ? error : unreachable(error);
  });
  if ('refusal' in opened) throw refusal(opened.refusal);
  const securing = AbortSignal.any([signal, AbortSignal.timeout(TLS_TIMEOUT_MS)]);
  return secure(opened.stream, target, securing, authoritiesOf(proxy));
}

/** Without an egress proxy, the operator writes no address of one. */
async function endpointOf({ files }: EgressFetchDeps): Promise<GatewayEndpoint> {
  try {
    return await files.current();
  } catch (cause) {
    if (!isTemperError(cause)) throw cause;
    throw new TemperError(
      'TEMPER_EGRESS_UNAVAILABLE',
      'this pod has no network egress; forge a tool that needs no network',
      { cause },
    );
  }
}

/** Undefined: those of the system. */
function authoritiesOf({ targetAuthorities }: GatewayEndpoint): readonly string[] | undefined {
  return targetAuthorities === undefined ? undefined : [...getCACertificates('default'), targetAuthorities];
}

function unreachable(cause: unknown): TemperError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'no answer in time';
  const message = `the egress proxy cannot be reached (${printable(code, 64)})`;
  return new TemperError('TEMPER_EGRESS_UNAVAILABLE', message, { cause, retry: 'backoff' });
}

/** The error that the proxy names; its statuses are for other clients. */
function refusal({ status, body }: { status: number; body: string }): TemperError {
  const error = member(jsonOf(body), 'error');
  const [code, message, retryAfterMs] = ['code', 'message', 'retryAfterMs'].map((name) => member(error, name));
  if (!isErrorCode(code) || typeof message !== 'string') {
    return new TemperError(
      'TEMPER_EGRESS_UNAVAILABLE',
      `the egress proxy refused the connection with status ${status}`,
    );
  }
  const retry = typeof retryAfterMs === 'number' && retryAfterMs >= 0 ? retryAfterMs : 'never';
  return new TemperError(code, printable(message, MAX_MESSAGE_CHARACTERS), { retry });
}

function jsonOf(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch {
    return undefined;
  }
}
