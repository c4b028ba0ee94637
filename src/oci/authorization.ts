import type { CallOptions } from '../lib/call-options.ts';
import { TemperError } from '../lib/errors.ts';
import { member } from '../lib/json.ts';
import { parseChallenges } from './challenge.ts';
import type { CredentialSource, RegistryCredential } from './docker-config.ts';
import type { OciReference } from './reference.ts';
import { type SendRequest, tryParse } from './transport.ts';

export interface AuthorizationDeps {
  readonly reference: OciReference;
  readonly access: 'pull' | 'pull,push';
  readonly send: SendRequest;
  readonly credentials: CredentialSource;
}

const MAX_TOKEN_BYTES = 32_768;

/**
 * The value of the `Authorization` header that the challenge of a registry asks for: a token of the service that it names, or the user's
 * credential itself. Throws TEMPER_OCI_UNAUTHORIZED and TEMPER_OCI_FAILED.
 */
export async function authorize(header: string, deps: AuthorizationDeps, op: CallOptions): Promise<string> {
  const { reference, credentials } = deps;
  const challenges = parseChallenges(header);
  const bearer = challenges.find(({ scheme }) => scheme === 'bearer');
  const credential = await credentials(authorityOf(reference));
  if (bearer !== undefined) return `Bearer ${await token(bearer.parameters, credential, deps, op)}`;
  if (!challenges.some(({ scheme }) => scheme === 'basic'))
    throw unauthorized(reference, 'asks for a way to authenticate that is not supported; Basic and Bearer are');
  if (credential === undefined)
    throw unauthorized(reference, 'wants a credential; log in, for example with docker login');
  return basic(credential);
}

/** The name of a registry in a Docker configuration file. */
function authorityOf({ host, port, isHttps }: OciReference): string {
  return port === (isHttps ? 443 : 80) ? host : `${host}:${port}`;
}

async function token(
  { realm = '', service }: Readonly<Record<string, string>>,
  credential: RegistryCredential | undefined,
  { reference, access, send }: AuthorizationDeps,
  op: CallOptions,
): Promise<string> {
  const url = URL.parse(realm);
  if (url === null) throw unauthorized(reference, 'names no token service');
  if (service !== undefined) url.searchParams.set('service', service);
  // The scope is what this command needs, not what the challenge asks for.
  url.searchParams.set('scope', `repository:${reference.repository}:${access}`);
  const headers = credential === undefined ? {} : { authorization: basic(credential) };
  const { status, body } = await send({ url: url.href, headers }, MAX_TOKEN_BYTES, op);
  const answer = tryParse(body);
  const found = member(answer, 'token') ?? member(answer, 'access_token');
  if (status === 200 && typeof found === 'string' && /^[\x21-\x7e]{1,8000}$/.test(found)) return found;
  const hint = credential === undefined ? '; log in, for example with docker login' : '; check the credential';
  throw unauthorized(reference, `gets no token from its token service, which answered ${status}${hint}`);
}

function basic({ username, password }: RegistryCredential): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function unauthorized({ host, repository }: OciReference, problem: string): TemperError {
  return new TemperError('TEMPER_OCI_UNAUTHORIZED', `registry ${host} ${problem} (repository ${repository})`);
}
