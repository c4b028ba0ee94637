import { type Digest, isDigest } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';

/** Where an artifact is in an OCI registry. */
export interface OciReference {
  /** Lower case. */
  readonly host: string;
  readonly port: number;
  readonly isHttps: boolean;
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: Digest;
  /** The text that names it in messages. */
  readonly text: string;
}

const SCHEME = 'oci://';
const HOST = /^([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?::(\d{1,5}))?$/;
const SEGMENT = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const MAX_REPOSITORY = 255;
/** Docker Hub serves its API under another name than the one that references have. */
const ALIASES: Readonly<Record<string, string>> = { 'docker.io': 'registry-1.docker.io' };

/** Parses `oci://HOST[:PORT]/REPOSITORY[:TAG][@DIGEST]`. Plain HTTP is for `localhost`, or with `plainHttp`. Throws TEMPER_USAGE. */
export function parseReference(text: string, { plainHttp = false }: { plainHttp?: boolean } = {}): OciReference {
  if (!text.startsWith(SCHEME)) throw invalid(text, `must start with ${SCHEME}`);
  const rest = text.slice(SCHEME.length);
  const slash = rest.indexOf('/');
  if (slash < 0) throw invalid(text, 'names no repository');
  const { name, port } = parseAuthority(text, rest.slice(0, slash));
  const isHttps = !plainHttp && name !== 'localhost';
  const host = ALIASES[name] ?? name;
  return { host, port: port ?? (isHttps ? 443 : 80), isHttps, ...parsePath(text, rest.slice(slash + 1)), text };
}

function parseAuthority(text: string, authority: string): { name: string; port: number | undefined } {
  const [, name, digits] = HOST.exec(authority) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (name === undefined || port === 0 || (port ?? 0) > 65_535)
    throw invalid(text, 'has no valid host; use a name in lower case, with an optional port');
  return { name, port };
}

function parsePath(text: string, rest: string): Pick<OciReference, 'repository' | 'tag' | 'digest'> {
  const [beforeDigest = '', digest, secondDigest] = rest.split('@');
  const [repository = '', tag, secondTag] = beforeDigest.split(':');
  if (secondDigest !== undefined || secondTag !== undefined) throw invalid(text, 'has more than one tag or digest');
  if (repository.length > MAX_REPOSITORY || !repository.split('/').every((segment) => SEGMENT.test(segment)))
    throw invalid(text, 'has no valid repository; use lower-case letters, digits, separators and slashes');
  if (tag === undefined && digest === undefined) throw invalid(text, 'names neither a tag nor a digest');
  return { repository, ...parseTag(text, tag), ...parseDigest(text, digest) };
}

function parseTag(text: string, tag: string | undefined): Pick<OciReference, 'tag'> {
  if (tag === undefined) return {};
  if (!TAG.test(tag)) throw invalid(text, 'has no valid tag');
  return { tag };
}

function parseDigest(text: string, digest: string | undefined): Pick<OciReference, 'digest'> {
  if (digest === undefined) return {};
  if (!isDigest(digest)) throw invalid(text, 'has no valid digest; use sha256: and 64 hexadecimal digits');
  return { digest };
}

/** `https://HOST[:PORT]` of the registry. */
export function originOf({ host, port, isHttps }: Pick<OciReference, 'host' | 'port' | 'isHttps'>): string {
  return new URL(`${isHttps ? 'https' : 'http'}://${host}:${port}`).origin;
}

function invalid(text: string, problem: string): TemperError {
  return new TemperError(
    'TEMPER_USAGE',
    `"${printable(text, 300)}" ${problem}; a reference is oci://HOST[:PORT]/REPOSITORY:TAG`,
  );
}
