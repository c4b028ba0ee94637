import {
  connectionFailure,
  createConnectionTransport,
  type Protocol,
  type ConnectionOptions,
} from '../../connections/connection-transport.ts';
import type { RemoteGitConnection } from '../../connections/connection.ts';
import type { GitTransport } from '../../git/transport.ts';
import { printable } from '../../lib/printable.ts';

const PROTOCOL_VERSION = { 'git-protocol': 'version=2' };
const MAX_MESSAGE = 200;

/** Git's smart HTTP over a connection, with its credential as a password. */
export function connectionTransport(connection: RemoteGitConnection, options: ConnectionOptions): GitTransport {
  const { url, username = 'git' } = connection.git;
  const protocol: Protocol = {
    authorizationOf: (credential) => `Basic ${Buffer.from(`${username}:${credential}`).toString('base64')}`,
    messageIn: (bytes) => printable(bytes.toString('utf8', 0, MAX_MESSAGE).trim()),
    sentHeaders: new Set(Object.keys(PROTOCOL_VERSION)),
  };
  const send = createConnectionTransport(connection, protocol, options);
  const root = url.replace(/\/$/, '');
  return async ({ path, body, contentType }, op) => {
    const request = {
      url: `${root}/${path}`,
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...PROTOCOL_VERSION, ...(contentType === undefined ? {} : { 'content-type': contentType }) },
      ...(body === undefined ? {} : { body }),
    };
    const { status, headers, bytes } = await send(request, op);
    if (status === 200) return { contentType: headers['content-type'] ?? '', bytes };
    const found =
      status === 404
        ? 'the repository does not exist, or is not visible to the token'
        : `the server answered ${status}`;
    throw connectionFailure(connection, `${found}; check git.url`);
  };
}
