import { authoritiesOf } from '../../connections/authorities.ts';
import type { Connection } from '../../connections/connection.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import { readSecretFile } from '../../net/secret-file.ts';
import { secretForms } from '../../telemetry/secret-redactor.ts';
import type { CallingMessage } from '../brokered/port.ts';
import type { OAuthTokens } from './oauth-tokens.ts';

/** What a gateway adds to a request, which neither the pod nor the model sees. */
export interface Credential {
  readonly headers: Readonly<Record<string, string>>;
  /** The only authorities to trust for the hosts, PEM; undefined: those of the platform. */
  readonly authorities: readonly string[] | undefined;
  /** Whether the text contains the credential, in any of its usual forms. */
  isIn(text: string): boolean;
  /** The server refused it with 401. True when another one may be had. */
  discard(): boolean;
}

const NO_CREDENTIAL: Credential = { headers: {}, authorities: undefined, isIn: () => false, discard: () => false };
/** The forms of a shorter text occur by chance. */
const MIN_SECRET_LENGTH = 8;

/**
 * The credential of a Connection for a request of a message. Its files are read at each use. Throws TEMPER_CONNECTION_UNAUTHORIZED,
 * TEMPER_CONNECTION_FAILED, and the errors of egress for an OAuth token.
 */
export async function credentialOf(
  connection: Connection | undefined,
  message: CallingMessage,
  tokens: OAuthTokens,
  op: CallOptions,
): Promise<Credential> {
  if (connection === undefined) return NO_CREDENTIAL;
  const secret = await secretOf(connection);
  const authorities = await authoritiesOf(connection);
  const { header, oauth } = connection;
  if (oauth !== undefined) {
    const client = { ...connection, oauth };
    const { token, isUsed } = await tokens.token(
      { connection: client, clientSecret: secret, authorities, message },
      op,
    );
    const discard = (): boolean => {
      tokens.discard(client, token);
      return isUsed;
    };
    return { headers: bearer(token), authorities, isIn: containing([secret, token]), discard };
  }
  const headers = header === undefined ? bearer(secret) : { [header.toLowerCase()]: secret };
  return { headers, authorities, isIn: containing([secret]), discard: () => false };
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

/** The secret of a connection, read from its file. Throws TEMPER_CONNECTION_UNAUTHORIZED. */
export async function secretOf({ name, credentialFile }: Connection): Promise<string> {
  const found = await readSecretFile(credentialFile);
  if ('secret' in found && found.secret.length >= MIN_SECRET_LENGTH) return found.secret;
  const problem =
    'secret' in found ? `has fewer than ${MIN_SECRET_LENGTH} characters` : 'cannot be read or is not a key';
  throw new TemperError(
    'TEMPER_CONNECTION_UNAUTHORIZED',
    `connection "${name}" has no credential: its file ${problem}`,
  );
}

/** Whether a text contains one of the secrets, in any of its usual forms. */
export function containing(secrets: readonly string[]): (text: string) => boolean {
  const forms = secrets.flatMap(secretForms);
  return (text) => forms.some((form) => text.includes(form));
}

/** Throws TEMPER_TOOL_OUTPUT_INVALID for an answer that contains the credential: a model would read it. */
export function assertNoEcho(tool: string, answer: Json, credential: Pick<Credential, 'isIn'>): void {
  if (!hasEcho(answer, credential)) return;
  const message = `the answer of "${tool}" contains the credential of its connection, so no agent gets it; rotate the credential, because the server hands it on`;
  throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', message);
}

/** Whether a text or a name of the value contains the credential. */
export function hasEcho(value: Json, credential: Pick<Credential, 'isIn'>): boolean {
  const pending: Json[] = [value];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next === 'string' && credential.isIn(next)) return true;
    if (Array.isArray(next)) pending.push(...next);
    else if (isJsonObject(next)) {
      if (Object.keys(next).some((key) => credential.isIn(key))) return true;
      pending.push(...Object.values(next));
    }
  }
  return false;
}
