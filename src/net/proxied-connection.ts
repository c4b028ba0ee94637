/** Connections to hosts through a proxy of the installation, which resolves names and decides about each connection. */
import type { Socket } from 'node:net';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { isErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import { type Json, member, parseUntrustedJson } from '../lib/json.ts';
import { printable } from '../lib/printable.ts';
import { secure } from './dialer.ts';
import type { Target } from './targets.ts';
import { openTunnel, type ProxyConnector } from './tunnel.ts';

interface EgressProxy {
  /** `https://address:port` */
  origin: string;
  connect: ProxyConnector;
  token: string;
}

interface ProxiedConnection {
  proxy: EgressProxy;
  /** For the proxy alone. */
  headers: Readonly<Record<string, string>>;
  /** The certificate authorities to trust for the target, PEM, or a context with them; absent: those of the system. */
  trust?: readonly string[] | SecureContext | undefined;
}

/** The decision of the gateway, the resolution of the name and the connection, together. */
const TUNNEL_TIMEOUT_MS = 15_000;
const TLS_TIMEOUT_MS = 5_000;
const MAX_MESSAGE_CHARACTERS = 1_000;

/**
 * A TLS connection to the target. Throws TEMPER_FETCH_DENIED for a target without TLS, TEMPER_EGRESS_UNAVAILABLE for a proxy that cannot be
 * reached, the error that the proxy names for a refusal, and the error of TLS.
 */
export async function connectThroughProxy(
  target: Target,
  { proxy, headers, trust }: ProxiedConnection,
  signal: AbortSignal,
): Promise<Socket> {
  if (!target.isHttps) throw new TemperError('TEMPER_FETCH_DENIED', 'a tool reaches only https URLs');
  const { hostname } = target.url;
  const tunnel = {
    proxy,
    authority: `${hostname}:${target.port}`,
    headers: { 'proxy-authorization': `Bearer ${proxy.token}`, ...headers },
  };
  const opening = AbortSignal.any([signal, AbortSignal.timeout(TUNNEL_TIMEOUT_MS)]);
  const opened = await openTunnel(tunnel, opening).catch((error: unknown) => {
    throw signal.aborted ? error : unreachable(error);
  });
  if ('refusal' in opened) throw refusal(opened.refusal);
  const securing = AbortSignal.any([signal, AbortSignal.timeout(TLS_TIMEOUT_MS)]);
  return secure(opened.stream, target, securing, trust);
}

/**
 * Trusts the public authorities and those of the platform, PEM. It reads hundreds of certificates, which takes tens of milliseconds, so
 * keep the context for further connections. A text that is no certificate adds none.
 */
export function platformTrust(added: string): SecureContext {
  return createSecureContext({ ca: [...getCACertificates('default'), added], minVersion: 'TLSv1.2' });
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
