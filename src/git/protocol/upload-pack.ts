import { isSafeBranchName } from '../branch-name.ts';
import { gitFailure } from '../failure.ts';
import { isObjectId } from '../objects/object-id.ts';
import { DELIMITER, FLUSH, lineOf, packet, packetsOf } from './pkt-line.ts';
import { sideBandOf } from './side-band.ts';

/** What a server offers for reading. */
export interface UploadPackCapabilities {
  /** Leaves out what is asked not to be sent. Git servers permit it with `uploadpack.allowFilter`. */
  readonly canFilter: boolean;
}

const AGENT = 'agent=temper';
const OBJECT_FORMAT = 'object-format=sha1';
const PEELED = 'peeled:';
const SYMREF = 'symref-target:';
const HEADS = 'refs/heads/';
const MAX_HEADS = 10_000;

/** The answer to `info/refs?service=git-upload-pack`. Throws for a server or repository that this client cannot read. */
export function parseUploadPack(body: Buffer): UploadPackCapabilities {
  const lines: string[] = [];
  for (const { payload } of packetsOf(body)) {
    const line = payload === undefined ? '' : lineOf(payload);
    if (line.startsWith('# service=') || (payload === undefined && lines.length === 0)) continue;
    if (payload === undefined) break;
    lines.push(line);
    if (lines[0] !== 'version 2') break;
  }
  const [version, ...capabilities] = lines;
  if (version !== 'version 2')
    throw gitFailure("the server has no version 2 of Git's protocol, which Git has since 2.18");
  assertObjectFormat(capabilities);
  const fetch = featuresOf(capabilities, 'fetch');
  if (fetch === undefined || featuresOf(capabilities, 'ls-refs') === undefined || !fetch.includes('shallow')) {
    throw gitFailure('the server offers no shallow fetch, which Temper needs');
  }
  return { canFilter: fetch.includes('filter') };
}

/** Throws for a repository with SHA-256 ids. */
export function assertObjectFormat(capabilities: readonly string[]): void {
  const format = capabilities.find((one) => one.startsWith('object-format='));
  if (format === undefined || format === OBJECT_FORMAT) return;
  throw gitFailure('the repository has another object format than sha1; Temper writes to sha1 repositories only');
}

/** The words after `NAME=`; undefined when the server does not have it. */
function featuresOf(capabilities: readonly string[], name: string): string[] | undefined {
  const found = capabilities.find((one) => one === name || one.startsWith(`${name}=`));
  return found?.slice(name.length + 1).split(' ');
}

/** Asks for branches and tags by their whole names. */
export function lsRefsRequest(refs: readonly string[]): Buffer {
  const prefixes = refs.map((ref) => packet(`ref-prefix ${ref}\n`));
  return Buffer.concat([...commandOf('ls-refs'), packet('peel\n'), packet('symrefs\n'), ...prefixes, FLUSH]);
}

/** The ids of those of `refs` that exist; of an annotated tag that of its commit. A server answers with all that begin with a name. */
export function parseRefs(body: Buffer, refs: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const { payload } of packetsOf(body)) {
    if (payload === undefined) break;
    const [ownId = '', name = '', ...attributes] = lineOf(payload).split(' ');
    if (!refs.includes(name)) continue;
    const id = attributes.find((one) => one.startsWith(PEELED))?.slice(PEELED.length) ?? ownId;
    if (!isObjectId(id) || found.has(name))
      throw gitFailure('the server sent a branch or a tag without a valid object id');
    found.set(name, id);
  }
  return found;
}

/** Branches and their commits, without names that Git, a server or a shell could read as something else; the first ones of many. */
export function parseHeads(body: Buffer): Map<string, string> {
  const found = new Map<string, string>();
  for (const { payload } of packetsOf(body)) {
    if (payload === undefined || found.size >= MAX_HEADS) break;
    const [id = '', ref = ''] = lineOf(payload).split(' ');
    const name = ref.startsWith(HEADS) ? ref.slice(HEADS.length) : '';
    if (isObjectId(id) && isSafeBranchName(name)) found.set(name, id);
  }
  return found;
}

/** The whole name of the branch that HEAD stands for; undefined when the server does not say. */
export function headBranch(body: Buffer): string | undefined {
  for (const { payload } of packetsOf(body)) {
    if (payload === undefined) break;
    const [, name, ...attributes] = lineOf(payload).split(' ');
    const target = attributes.find((one) => one.startsWith(SYMREF))?.slice(SYMREF.length);
    if (name === 'HEAD' && target?.startsWith(HEADS) === true) return target;
  }
  return undefined;
}

/** Asks for one commit with everything in it, and for this many commits of its history. */
export function cloneRequest(commit: string, depth: number): Buffer {
  const wanted = ['no-progress', `want ${commit}`, `deepen ${depth}`, 'done'];
  return Buffer.concat([...commandOf('fetch'), ...wanted.map((line) => packet(`${line}\n`)), FLUSH]);
}

/** What a repository has, as the request states it. */
export interface KnownCommits {
  readonly haves: readonly string[];
  /** Commits that it has without their parents. */
  readonly shallow: readonly string[];
}

/** Asks for the history of a commit without what the reader has. No delta rests on an object that is not sent. */
export function sinceRequest(commit: string, { haves, shallow }: KnownCommits): Buffer {
  const known = [...shallow.map((id) => `shallow ${id}`), ...haves.map((id) => `have ${id}`)];
  const lines = ['no-progress', `want ${commit}`, ...known, 'done'];
  return Buffer.concat([...commandOf('fetch'), ...lines.map((line) => packet(`${line}\n`)), FLUSH]);
}

/** The commits in the answer to `cloneRequest` whose parents the server left out. */
export function shallowIn(body: Buffer): string[] {
  const found: string[] = [];
  for (const { payload } of packetsOf(body)) {
    const line = payload === undefined ? '' : lineOf(payload);
    if (line === 'packfile') break;
    const id = /^shallow ([0-9a-f]{40})$/.exec(line)?.[1];
    if (id !== undefined) found.push(id);
  }
  return found;
}

/** Asks for one commit with its folders, and without the contents of files when the server permits it. */
export function fetchRequest(commit: string, { canFilter }: UploadPackCapabilities): Buffer {
  const wanted = ['no-progress', `want ${commit}`, 'deepen 1', ...(canFilter ? ['filter blob:none'] : []), 'done'];
  return Buffer.concat([...commandOf('fetch'), ...wanted.map((line) => packet(`${line}\n`)), FLUSH]);
}

/** Asks for objects by their ids, such as the contents of files. */
export function fetchObjectsRequest(ids: readonly string[]): Buffer {
  const lines = ['no-progress', ...ids.map((id) => `want ${id}`), 'done'];
  return Buffer.concat([...commandOf('fetch'), ...lines.map((line) => packet(`${line}\n`)), FLUSH]);
}

/** The pack of the answer. */
export function packOf(body: Buffer): Buffer {
  const packets = packetsOf(body);
  for (const { payload } of { [Symbol.iterator]: () => ({ next: () => packets.next() }) }) {
    if (payload !== undefined && lineOf(payload) === 'packfile') return sideBandOf(packets).data;
  }
  throw gitFailure('the server sent no pack');
}

function commandOf(name: string): Buffer[] {
  return [packet(`command=${name}\n`), packet(`${AGENT}\n`), packet(`${OBJECT_FORMAT}\n`), DELIMITER];
}
