import type { CallOptions } from '../lib/call-options.ts';
import type { Digest } from '../lib/canonical.ts';
import {
  ATTESTATION,
  type ArtifactFile,
  type ArtifactKind,
  artifactManifest,
  contentInvalid,
  type Descriptor,
  descriptorOf,
  EMPTY_CONFIG,
  MANIFEST_TYPE,
  type ArtifactOptions,
  TOOL,
} from './manifest.ts';
import { originOf, type OciReference } from './reference.ts';
import { recordReferrer } from './referrers.ts';
import type { RegistryClient } from './registry-client.ts';
import { failed } from './transport.ts';

export interface ToolFiles {
  /** The package of the tool, JSON. */
  readonly package: string;
  /** The DSSE envelope of its statement. */
  readonly attestation?: string;
  readonly name: string;
  /** Of the artifact. */
  readonly toolDigest: string;
  /** RFC 3339. */
  readonly created: string;
}

/**
 * Pushes a tool, and its attestation as a referrer of it. The blobs are there before a manifest names them, and the tag moves last, so a
 * push that ends early leaves the tag as it was. Returns the digest of the manifest.
 */
export async function pushTool(
  client: RegistryClient,
  reference: OciReference,
  files: ToolFiles,
  op: CallOptions,
): Promise<Digest> {
  const push: Push = { client, reference, op };
  const annotations = { 'org.opencontainers.image.created': files.created, 'dev.temper.tool.digest': files.toolDigest };
  await pushBlob(push, EMPTY_CONFIG);
  const manifest = await pushFiles(push, TOOL, [{ title: `${files.name}.json`, text: files.package }], { annotations });
  const subject = descriptorOf(MANIFEST_TYPE, manifest);
  if (files.attestation !== undefined) await pushAttestation(push, files.attestation, subject, files.name);
  await putManifest(push, reference.tag ?? subject.digest, manifest);
  return subject.digest;
}

/**
 * Pushes an artifact of files. The same files make the same manifest. The tag moves last, so a push that ends early leaves the tag as it
 * was. Returns the digest of the manifest.
 */
export async function pushArtifact(
  client: RegistryClient,
  reference: OciReference,
  { kind, files, annotations }: { kind: ArtifactKind; files: readonly ArtifactFile[] } & ArtifactOptions,
  op: CallOptions,
): Promise<Digest> {
  const push: Push = { client, reference, op };
  await pushBlob(push, EMPTY_CONFIG);
  const manifest = await pushFiles(push, kind, files, { annotations });
  const { digest } = descriptorOf(MANIFEST_TYPE, manifest);
  await putManifest(push, reference.tag ?? digest, manifest);
  return digest;
}

interface Push {
  readonly client: RegistryClient;
  readonly reference: OciReference;
  readonly op: CallOptions;
}

async function pushAttestation(push: Push, envelope: string, subject: Descriptor, name: string): Promise<void> {
  const annotations = { 'in-toto.io/predicate-type': 'https://temper.dev/attestation/tool/v1' };
  const file = { title: `${name}.attestation.json`, text: envelope };
  const manifest = await pushFiles(push, ATTESTATION, [file], { annotations, subject });
  const descriptor = descriptorOf(MANIFEST_TYPE, manifest);
  const isProcessed = await putManifest(push, descriptor.digest, manifest);
  if (!isProcessed)
    await recordReferrer(
      push.client,
      subject.digest,
      { ...descriptor, artifactType: ATTESTATION.artifactType },
      push.op,
    );
}

/** Uploads the files and returns the manifest that names them. */
async function pushFiles(
  push: Push,
  kind: ArtifactKind,
  files: readonly ArtifactFile[],
  options: ArtifactOptions,
): Promise<string> {
  for (const { text } of files) await pushBlob(push, text);
  return artifactManifest(kind, files, options);
}

async function pushBlob({ client, reference, op }: Push, content: string): Promise<void> {
  const { digest } = descriptorOf('', content);
  const existing = await client({ method: 'HEAD', path: `blobs/${digest}` }, op);
  if (existing.status === 200) return;
  const started = await client({ method: 'POST', path: 'blobs/uploads/' }, op);
  const session = URL.parse(started.headers['location'] ?? '', `${originOf(reference)}/`);
  if (session === null || started.status !== 202)
    throw failed(reference, `it starts no upload (status ${started.status})`);
  if (session.origin !== originOf(reference))
    throw failed(reference, 'it takes uploads on another host, which is not supported');
  session.searchParams.set('digest', digest);
  const done = await client(
    { method: 'PUT', path: session.href, contentType: 'application/octet-stream', body: content },
    op,
  );
  if (done.status !== 201) throw failed(reference, `it did not store a blob (status ${done.status})`);
}

/** Whether the registry keeps the list of referrers itself. */
async function putManifest({ client, reference, op }: Push, name: string, manifest: string): Promise<boolean> {
  const { digest } = descriptorOf(MANIFEST_TYPE, manifest);
  const stored = await client(
    { method: 'PUT', path: `manifests/${name}`, contentType: MANIFEST_TYPE, body: manifest },
    op,
  );
  if (stored.status !== 201) throw failed(reference, `it did not store the manifest (status ${stored.status})`);
  const said = stored.headers['docker-content-digest'];
  if (said !== undefined && said !== digest) throw contentInvalid('the registry stored a manifest with another digest');
  return stored.headers['oci-subject-processed'] !== undefined;
}
