import { TemperError } from '../lib/errors.ts';
import { type Json, jsonExcess, member, parseUntrustedJson } from '../lib/json.ts';

/** A user name and a password, or a token in place of one. */
export interface RegistryCredential {
  readonly username: string;
  readonly password: string;
}

/** The credential for a registry; undefined for an anonymous request. Throws TEMPER_OCI_UNAUTHORIZED. */
export type CredentialSource = (registry: string) => Promise<RegistryCredential | undefined>;

const LIMITS = { values: 10_000, depth: 8 };
const MAX_CHARACTERS = 1_048_576;
/** The key under which `docker login` stores the credential for Docker Hub. */
const HUB = { host: 'registry-1.docker.io', key: 'https://index.docker.io/v1/' };

/**
 * The credential for a registry, `HOST` or `HOST:PORT`, in the text of a Docker configuration file. Credential helpers are programs, and
 * Temper runs none. Throws TEMPER_OCI_UNAUTHORIZED for a credential that exists only there, and for a damaged file.
 */
export function credentialIn(text: string, registry: string): RegistryCredential | undefined {
  const config = parse(text);
  const auths = member(config, 'auths');
  const keys = [registry, `https://${registry}`, ...(registry === HUB.host ? [HUB.key] : [])];
  const entry = keys.map((key) => member(auths, key)).find((found) => found !== undefined);
  const credential = entry === undefined ? undefined : credentialOf(entry, registry);
  if (credential !== undefined) return credential;
  const helper = keys.map((key) => member(member(config, 'credHelpers'), key)).find((found) => found !== undefined);
  if (helper === undefined && member(config, 'credsStore') === undefined) return undefined;
  throw unusable(
    `keeps the credential for ${registry} in a credential helper, which is not run; log in with a DOCKER_CONFIG folder whose config.json has no credsStore and no credHelpers`,
  );
}

function credentialOf(entry: Json, registry: string): RegistryCredential | undefined {
  for (const field of ['identitytoken', 'registrytoken'])
    if (member(entry, field))
      throw unusable(`has a ${field} for ${registry}, which is not supported; log in with a password`);
  const [username, password] = [member(entry, 'username'), member(entry, 'password')];
  if (typeof username === 'string' && typeof password === 'string' && password !== '') return { username, password };
  const auth = member(entry, 'auth');
  if (typeof auth !== 'string' || auth === '') return undefined;
  const decoded = Buffer.from(auth, 'base64').toString('utf8').replace(/\0+$/, '');
  const colon = decoded.indexOf(':');
  if (colon < 1) throw unusable(`has no valid auth for ${registry}; log in again`);
  return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
}

function parse(text: string): Json {
  try {
    if (text.length <= MAX_CHARACTERS && jsonExcess(text, LIMITS) === undefined) return parseUntrustedJson(text);
  } catch {
    // The message below names no text of the file, which has secrets.
  }
  throw unusable('is not JSON of the expected size; correct or remove it');
}

function unusable(problem: string): TemperError {
  return new TemperError('TEMPER_OCI_UNAUTHORIZED', `the Docker configuration file ${problem}`);
}
