import { connect, type NatsConnection, nkeyAuthenticator } from '@nats-io/transport-node';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { natsError } from '../connection/errors.ts';

/** Server and credentials of a short-lived connection. */
export interface NatsLogin {
  /** `tls://host:port`. */
  url: string;
  /** The nkey seed of the user. */
  seed: string;
  /** PEM of the CAs to trust. */
  ca: string;
}

const TIMEOUT_MS = 5_000;
/** Name of the one user of the system account. */
export const SYSTEM_USER = 'system';

/**
 * Makes the server reload its configuration, certificate and users; connections that are still allowed stay open. Throws
 * TEMPER_BUS_UNAVAILABLE with the server's error when the reload fails, and TEMPER_BUS_* connection errors. Idempotent.
 */
export async function reloadServer(visit: NatsLogin, serverId: string): Promise<void> {
  const response = await withConnection(visit, SYSTEM_USER, (nats) =>
    nats.request(`$SYS.REQ.SERVER.${serverId}.RELOAD`, '', { timeout: TIMEOUT_MS }),
  );
  const body = parseUntrustedJson(response.string());
  const error = isJsonObject(body) ? body['error'] : undefined;
  if (error === undefined || error === null) return;
  const reason = printable(JSON.stringify(error), 400);
  throw new TemperError('TEMPER_BUS_UNAVAILABLE', `the server rejected the configuration reload: ${reason}`);
}

/** True if the server authenticates this user, false if it rejects the credentials. Throws TEMPER_BUS_* for every other failure. */
export async function canAuthenticate(visit: NatsLogin, user: string): Promise<boolean> {
  try {
    await withConnection(visit, user, () => Promise.resolve());
    return true;
  } catch (error) {
    if (error instanceof TemperError && error.code === 'TEMPER_BUS_UNAUTHORIZED') return false;
    throw error;
  }
}

async function withConnection<T>(
  { url, seed, ca: authorities }: NatsLogin,
  user: string,
  work: (nats: NatsConnection) => Promise<T>,
): Promise<T> {
  let nats: NatsConnection | undefined;
  try {
    nats = await connect({
      servers: url,
      name: `temper-${user}`,
      inboxPrefix: `_INBOX_${user}`,
      authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)),
      tls: { ca: authorities },
      reconnect: false,
      timeout: TIMEOUT_MS,
    });
    return await work(nats);
  } catch (error) {
    throw natsError(error, `connecting to NATS as "${user}"`);
  } finally {
    await nats?.close();
  }
}
