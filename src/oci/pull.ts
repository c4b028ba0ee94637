import type { CallOptions } from '../lib/call-options.ts';
import { type Digest, sha256 } from '../lib/canonical.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import {
  ATTESTATION,
  type ArtifactKind,
  contentInvalid,
  type Descriptor,
  type FileLimits,
  MANIFEST_TYPE,
  parseFileManifest,
  parseManifest,
  TOOL,
} from './manifest.ts';
import type { OciReference } from './reference.ts';
import { listReferrers } from './referrers.ts';
import type { RegistryClient } from './registry-client.ts';

export interface PulledTool {
  /** Of the manifest. */
  readonly digest: Digest;
  /** The package of the tool, JSON. Untrusted. */
  readonly package: string;
}

const MAX_MANIFEST_BYTES = 262_144;
/** Attestations of one tool that are read. */
const MAX_ATTESTATIONS = 10;

/** Pulls a tool. Throws TEMPER_NOT_FOUND, and TEMPER_OCI_CONTENT_INVALID for content that is not what its digest says. */
export async function pullTool(client: RegistryClient, reference: OciReference, op: CallOptions): Promise<PulledTool> {
  const name = reference.digest ?? reference.tag ?? '';
  const text = await getManifest(client, name, op);
  const digest = sha256(text);
  const { layer } = parseManifest(text, TOOL);
  return { digest, package: await getBlob(client, layer, op) };
}

export interface PulledFiles {
  /** Of the manifest. */
  readonly digest: Digest;
  /** By path. Untrusted. */
  readonly files: ReadonlyMap<string, string>;
}

/** Pulls an artifact of files, all of them within the limits. Throws as `pullTool` does. */
export async function pullArtifact(
  client: RegistryClient,
  reference: OciReference,
  kind: ArtifactKind,
  limits: FileLimits,
  op: CallOptions,
): Promise<PulledFiles> {
  const text = await getManifest(client, reference.digest ?? reference.tag ?? '', op);
  const files = new Map<string, string>();
  for (const [path, layer] of parseFileManifest(text, kind, limits)) files.set(path, await getBlob(client, layer, op));
  return { digest: sha256(text), files };
}

/** The digest of the manifest that a tag names now; undefined when the repository does not have the tag. */
export async function digestOfTag(client: RegistryClient, tag: string, op: CallOptions): Promise<Digest | undefined> {
  try {
    return sha256(await getManifest(client, tag, op));
  } catch (error) {
    if (isTemperError(error, 'TEMPER_NOT_FOUND')) return undefined;
    throw error;
  }
}

/** The DSSE envelopes that refer to a manifest. Untrusted. */
export async function pullAttestations(client: RegistryClient, subject: Digest, op: CallOptions): Promise<string[]> {
  const referrers = await listReferrers(client, subject, op);
  const found = referrers.filter(({ artifactType }) => artifactType === ATTESTATION.artifactType);
  if (found.length > MAX_ATTESTATIONS)
    throw contentInvalid(`the tool has ${found.length} attestations; at most ${MAX_ATTESTATIONS} are read`);
  const envelopes: string[] = [];
  for (const { digest } of found) envelopes.push(await getAttestation(client, digest, subject, op));
  return envelopes;
}

async function getAttestation(client: RegistryClient, digest: Digest, about: Digest, op: CallOptions): Promise<string> {
  const { layer, subject } = parseManifest(await getManifest(client, digest, op), ATTESTATION);
  if (subject?.digest !== about) throw contentInvalid('a referrer is about another manifest');
  return getBlob(client, layer, op);
}

async function getManifest(client: RegistryClient, name: string, op: CallOptions): Promise<string> {
  const path = `manifests/${name}`;
  const { status, headers, body } = await client(
    { method: 'GET', path, accept: MANIFEST_TYPE, maxBytes: MAX_MANIFEST_BYTES },
    op,
  );
  if (status === 404) throw notFound(`no manifest ${printable(name, 140)}`);
  const digest = sha256(body);
  const expected = name.startsWith('sha256:') ? name : (headers['docker-content-digest'] ?? digest);
  if (digest !== expected)
    throw contentInvalid(`the manifest ${printable(name, 140)} does not have the digest ${printable(expected, 80)}`);
  return body;
}

async function getBlob(client: RegistryClient, { digest, size }: Descriptor, op: CallOptions): Promise<string> {
  const { status, body } = await client({ method: 'GET', path: `blobs/${digest}`, maxBytes: size }, op);
  if (status === 404) throw notFound(`no blob ${digest}`);
  if (Buffer.byteLength(body) !== size || sha256(body) !== digest)
    throw contentInvalid(`the blob does not have the digest ${digest} and ${size} bytes`);
  return body;
}

function notFound(what: string): TemperError {
  return new TemperError('TEMPER_NOT_FOUND', `the repository has ${what}; check the reference and your permissions`);
}
