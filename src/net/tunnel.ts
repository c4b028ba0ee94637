/** Opens tunnels through a proxy that is reached over TLS (RFC 9110, 9.3.6). */
import type { Duplex } from 'node:stream';
import { createSecureContext } from 'node:tls';
import { Agent, buildConnector } from 'undici';
import { abortable } from '../lib/async/abort.ts';
import { readBody } from '../lib/async/read-body.ts';

/** Opens a TLS connection to one proxy. */
export type ProxyConnector = buildConnector.connector;

/**
 * Trusts the authorities `ca`, PEM, for a certificate with the name. A connection resumes the session of an earlier one, which saves both
 * sides the certificate and its signature, so keep the connector for further connections.
 */
export function proxyConnector({ serverName, ca }: { serverName: string; ca: string }): ProxyConnector {
  const secureContext = createSecureContext({ ca, minVersion: 'TLSv1.3' });
  let session: Buffer | undefined;
  return (options, done) => {
    const connect = buildConnector({ secureContext, allowH2: false, session });
    connect({ ...options, servername: serverName }, (...[error, socket]) => {
      if (error !== null) return done(error, null);
      // TLS 1.3 sends it after the handshake.
      socket.on('session', (next: Buffer) => {
        session = next;
      });
      done(null, socket);
    });
  };
}

export interface TunnelRequest {
  proxy: {
    /** `https://address:port` */
    origin: string;
    connect: ProxyConnector;
  };
  /** `host:port`, with brackets around an IPv6 address. */
  authority: string;
  /** For the proxy alone, which gets them only after its certificate was verified. */
  headers: Readonly<Record<string, string>>;
}

/** The stream to the target, or what the proxy answered in place of it. */
export type TunnelResult = { stream: Duplex } | { refusal: { status: number; body: string } };

const MAX_REFUSAL_BYTES = 65_536;

/** Throws the error of a connection that fails, or of the signal. */
export async function openTunnel(
  { proxy: { origin, connect }, authority, headers }: TunnelRequest,
  signal: AbortSignal,
): Promise<TunnelResult> {
  const agent = new Agent({ connect });
  try {
    const { statusCode, socket } = await agent.connect({
      origin,
      path: authority,
      headers: { host: authority, ...headers },
      signal,
    });
    if (statusCode === 200) return { stream: socket };
    return { refusal: { status: statusCode, body: await bodyOf(socket, signal) } };
  } finally {
    // The socket of a tunnel does not belong to it any more.
    await agent.destroy();
  }
}

/** All that the proxy sends until it closes the connection. */
async function bodyOf(socket: Duplex, signal: AbortSignal): Promise<string> {
  const tooLarge = (): Error => new Error(`the proxy refused with more than ${MAX_REFUSAL_BYTES} bytes`);
  try {
    return await abortable(readBody(socket, MAX_REFUSAL_BYTES, tooLarge), signal);
  } finally {
    socket.destroy();
  }
}
