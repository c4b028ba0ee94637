import { connect, type NatsConnection, nkeyAuthenticator } from '@nats-io/transport-node';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { isJsonObject, parseUntrustedJson } from '../lib/json.ts';
import { busFailure } from './failures.ts';

/** A short connection of one user. */
export interface Visit {
  /** `tls://host:port`. */
  url: string;
  /** The nkey seed of the user. */
  seed: string;
  /** PEM of the authorities to trust. */
  authorities: string;
}

const TIMEOUT = 5_000;
/** Of the one user of the system account. */
export const SYSTEM_USER = 'system';

/**
 * Has the server read its configuration, certificate and users again; connections that stay allowed stay. Throws TEMPER_BUS_UNAVAILABLE
 * with the server's words when it refuses, and what connecting throws.
 */
export async function reloadServer(visit: Visit, serverId: string): Promise<void> {
  const answer = await visited(visit, SYSTEM_USER, (nats) =>
    nats.request(`$SYS.REQ.SERVER.${serverId}.RELOAD`, '', { timeout: TIMEOUT }),
  );
  const said = parseUntrustedJson(answer.string());
  const error = isJsonObject(said) ? said['error'] : undefined;
  if (error === undefined || error === null) return;
  const words = printable(JSON.stringify(error), 400);
  throw new TemperError('TEMPER_BUS_UNAVAILABLE', `the server refused to read its configuration again: ${words}`);
}

/** Does the server let this user in? Throws for any other failure than its refusal. */
export async function isLetIn(visit: Visit, user: string): Promise<boolean> {
  try {
    await visited(visit, user, () => Promise.resolve());
    return true;
  } catch (error) {
    if (error instanceof TemperError && error.code === 'TEMPER_BUS_UNAUTHORIZED') return false;
    throw error;
  }
}

async function visited<T>(
  { url, seed, authorities }: Visit,
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
      timeout: TIMEOUT,
    });
    return await work(nats);
  } catch (error) {
    throw busFailure(error, `visiting the bus as "${user}"`);
  } finally {
    await nats?.close();
  }
}
