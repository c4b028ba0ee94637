import { readFile } from 'node:fs/promises';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';

const MAX_CHARACTERS = 1_024;

/**
 * The header `Proxy-Authorization` (RFC 7617) from a file with `user:password` in UTF-8; a line break at its end does not count. Read it
 * for each connection, so that a rotated password is used at once. Throws TEMPER_CONFIGURATION_INVALID with the rule that the file breaks,
 * and with no part of it.
 */
export async function proxyAuthorization(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw invalid(`cannot be read: ${messageOf(cause)}`, cause);
  });
  const credentials = text.replace(/\r?\n$/, '');
  if (credentials.length > MAX_CHARACTERS) throw invalid(`is longer than ${MAX_CHARACTERS} characters`);
  if (/\p{Cc}/u.test(credentials)) throw invalid('contains a control character; write user:password on one line');
  if (credentials.indexOf(':') < 1) throw invalid('is not user:password');
  return `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`;
}

/** The same for a connection of an agent, whose error names no path of the proxy. */
export async function authorizationForAgent(path: string): Promise<string> {
  try {
    return await proxyAuthorization(path);
  } catch (cause) {
    if (!isTemperError(cause, 'TEMPER_CONFIGURATION_INVALID')) throw cause;
    throw new TemperError('TEMPER_FETCH_FAILED', 'the egress proxy has no valid credentials of the upstream proxy', {
      cause,
    });
  }
}

function invalid(problem: string, cause?: unknown): TemperError {
  return new TemperError('TEMPER_CONFIGURATION_INVALID', `httpsProxyCredentialFile ${problem}`, { cause });
}
