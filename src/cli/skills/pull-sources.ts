import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { createSafeBytesFetch } from '../../net/fetch.ts';
import { namedServerRules } from '../../net/targets.ts';
import { gitFailure } from '../../git/failure.ts';
import { GIT_HEADERS, httpTransport, MAX_GIT_BYTES } from '../../git/http-transport.ts';
import { isRegularFile, type TreeEntry } from '../../git/objects/tree.ts';
import { parseGitReference, pinnedReference } from '../../git/reference.ts';
import { GitRemote } from '../../git/remote.ts';
import { SKILL } from '../../oci/manifest.ts';
import { digestOfTag, pullArtifact } from '../../oci/pull.ts';
import { SKILL_LIMITS, SKILL_PATH } from '../../skills/folder/folder-files.ts';
import type { PulledFile } from '../../skills/pulled/pulled-files.ts';
import type { CliIo } from '../io.ts';
import { registryAccess, type RegistryAccessOptions } from '../tools/oci/registry-access.ts';

/** The files of a skill elsewhere. Untrusted. */
export interface PulledSkill {
  /** As the user names it. */
  reference: string;
  /** Exactly: with the digest of the manifest, or the commit. */
  source: string;
  files: readonly PulledFile[];
  /** What the report names besides the source. */
  pin: { manifest: string } | { commit: string };
  /** The digest that the tag of the reference has now, when the reference pins another one. */
  tagNow?: string;
}

const GIT_TIMEOUT_MS = 120_000;

/** Reads the files from an OCI registry or a Git repository. Throws what the clients throw, and TEMPER_USAGE for another reference. */
export async function pullFiles(options: RegistryAccessOptions, io: CliIo): Promise<PulledSkill> {
  if (options.reference.startsWith('oci://')) return fromRegistry(options, io);
  if (/^https?:\/\//.test(options.reference)) return fromGit(options.reference, io);
  throw new TemperError(
    'TEMPER_USAGE',
    `"${printable(options.reference, 300)}" is not a reference; use oci://HOST/REPOSITORY:TAG or https://HOST/PATH.git#NAME:FOLDER`,
  );
}

async function fromRegistry(options: RegistryAccessOptions, io: CliIo): Promise<PulledSkill> {
  const { reference, client, op } = registryAccess(options, 'pull', io);
  const limits = { ...SKILL_LIMITS, path: SKILL_PATH };
  const { digest: manifest, files } = await pullArtifact(client, reference, SKILL, limits, op);
  const { tag, digest: pinned, text } = reference;
  const now = tag === undefined || pinned === undefined ? undefined : await digestOfTag(client, tag, op);
  return {
    reference: text,
    source: pinned === undefined ? `${text}@${manifest}` : text,
    files: [...files].map(([path, content]) => ({ path, content: Buffer.from(content) })),
    pin: { manifest },
    ...(now === undefined || now === pinned ? {} : { tagNow: now }),
  };
}

async function fromGit(text: string, io: CliIo): Promise<PulledSkill> {
  const reference = parseGitReference(text);
  const fetch = createSafeBytesFetch({ clock: systemClock, maxBodyBytes: MAX_GIT_BYTES, sentHeaders: GIT_HEADERS });
  const remote = new GitRemote(httpTransport(fetch, reference.url, namedServerRules(reference)), systemClock);
  const op = { signal: io.signal, deadline: systemClock.monotonic() + GIT_TIMEOUT_MS, key: 'git' };
  const found = await remote.resolve(reference.name, op);
  if (found === undefined)
    throw new TemperError('TEMPER_NOT_FOUND', `${reference.url} has no branch or tag ${reference.name}`);
  const { commit } = found;
  const entries = await remote.entriesBelow(reference.folder, commit, SKILL_LIMITS, op);
  if (entries === undefined)
    throw new TemperError('TEMPER_NOT_FOUND', `commit ${commit} has no folder ${reference.folder}`);
  assertFiles(entries);
  const contents = await remote.contents(
    [...entries.values()].map(({ id }) => id),
    op,
  );
  const files = [...entries].map(([path, { id }]) => ({ path, content: contents.get(id) ?? Buffer.alloc(0) }));
  return { reference: text, source: pinnedReference(reference, commit), files, pin: { commit } };
}

/** Before any content is asked for. */
function assertFiles(entries: ReadonlyMap<string, TreeEntry>): void {
  const other = [...entries].find(([, entry]) => !isRegularFile(entry));
  if (other !== undefined)
    throw gitFailure(`${printable(other[0], 300)} is a link or a submodule, so nothing of the folder is used`);
  if (entries.size > SKILL_LIMITS.files)
    throw gitFailure(`the folder has more than ${SKILL_LIMITS.files} files; name the folder of one skill`);
}
