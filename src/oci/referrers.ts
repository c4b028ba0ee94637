import type { CallOptions } from '../lib/call-options.ts';
import type { Digest } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { type Descriptor, INDEX_TYPE, parseIndex } from './manifest.ts';
import type { RegistryClient } from './registry-client.ts';

const MAX_INDEX_BYTES = 1_048_576;
/** Referrers in the list of a tag, which a push reads and writes as a whole. */
const MAX_LISTED = 1_000;

type Referrer = Descriptor & { readonly artifactType?: string };

/** What refers to a manifest, by the interface of the registry or by the tag that replaces it. */
export async function listReferrers(client: RegistryClient, subject: Digest, op: CallOptions): Promise<Referrer[]> {
  const listed = await getIndex(client, `referrers/${subject}`, op);
  return listed ?? (await getIndex(client, `manifests/${tagOf(subject)}`, op)) ?? [];
}

/** Adds a referrer to the list of a registry that keeps none itself. Of two pushes at the same moment one may be lost. */
export async function recordReferrer(
  client: RegistryClient,
  subject: Digest,
  referrer: Referrer,
  op: CallOptions,
): Promise<void> {
  const path = `manifests/${tagOf(subject)}`;
  const known = (await getIndex(client, path, op)) ?? [];
  if (known.some(({ digest }) => digest === referrer.digest)) return;
  if (known.length >= MAX_LISTED)
    throw new TemperError(
      'TEMPER_OCI_FAILED',
      `${tagOf(subject)} lists ${known.length} referrers; remove those that are not needed`,
    );
  const index = { schemaVersion: 2, mediaType: INDEX_TYPE, manifests: [...known, referrer] };
  await client({ method: 'PUT', path, contentType: INDEX_TYPE, body: JSON.stringify(index) }, op);
}

async function getIndex(client: RegistryClient, path: string, op: CallOptions): Promise<Referrer[] | undefined> {
  const { status, body } = await client({ method: 'GET', path, accept: INDEX_TYPE, maxBytes: MAX_INDEX_BYTES }, op);
  return status === 404 ? undefined : parseIndex(body);
}

/** The referrers tag of the distribution specification. */
function tagOf(subject: Digest): string {
  return subject.replace(':', '-');
}
