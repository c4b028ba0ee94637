import type { CallOptions } from '../lib/call-options.ts';
import type { Clock } from '../lib/clock.ts';
import { gitFailure } from './failure.ts';
import { commitObject } from './objects/commit.ts';
import { editTree, type TreeChange } from './objects/edit-tree.ts';
import { isObjectId, NO_OBJECT, objectId } from './objects/object-id.ts';
import { type FolderLimits, listBelow } from './objects/list-tree.ts';
import { contentOf, folderIn, rootOf, treeIn } from './objects/read-objects.ts';
import { isRegularFile, type TreeEntry } from './objects/tree.ts';
import { EVERYTHING, FILES, PACK_LIMITS, type PackLimits, type PackObjects, readPack } from './pack/pack-reader.ts';
import { writePack } from './pack/pack-writer.ts';
import { parseReceivePack, pushRequest, refusalIn } from './protocol/receive-pack.ts';
import {
  cloneRequest,
  fetchObjectsRequest,
  fetchRequest,
  headBranch,
  lsRefsRequest,
  type KnownCommits,
  packOf,
  parseHeads,
  parseRefs,
  parseUploadPack,
  shallowIn,
  sinceRequest,
} from './protocol/upload-pack.ts';
import type { GitTransport } from './transport.ts';

type Service = 'git-upload-pack' | 'git-receive-pack';

export interface PushOrder {
  readonly branch: string;
  /** The commit that the branch has; undefined: the push creates it. */
  readonly before: string | undefined;
  readonly parent: string;
  readonly changes: readonly TreeChange[];
  readonly message: string;
}

export interface ResolvedName {
  readonly commit: string;
  /** Without `refs/heads/`; absent for a tag and an id. */
  readonly branch?: string;
}

/** Moves a branch, and only from the commit that was read. */
export interface BranchUpdate {
  readonly branch: string;
  /** Undefined: the push creates the branch. */
  readonly before: string | undefined;
  readonly after: string;
  /** Everything of the commit that the server does not have. */
  readonly pack: Buffer;
}

/** The branches of a repository, by their names. */
export interface Heads {
  readonly branches: ReadonlyMap<string, string>;
  /** The default branch, as far as the server says. */
  readonly head: string | undefined;
}

/** What a server sent, not checked. */
export interface SentPack {
  readonly pack: Buffer;
  /** Commits without their parents. */
  readonly shallow: readonly string[];
}

export interface Clone extends SentPack {
  readonly commit: string;
  readonly objects: PackObjects;
}

/**
 * The branches of a repository over smart HTTP, with version 2 of the protocol. Reads single commits without their history, and pushes
 * single commits without force. Methods throw TEMPER_CONNECTION_FAILED and TEMPER_CONNECTION_UNAUTHORIZED.
 */
export class GitRemote {
  readonly #send: GitTransport;
  readonly #clock: Clock;
  /** The last commit that was read: the branch that many looks read seldom changes. */
  #last: { readonly commit: string; readonly objects: PackObjects } | undefined;

  constructor(send: GitTransport, clock: Clock) {
    this.#send = send;
    this.#clock = clock;
  }

  /** The commits of those branches that exist. */
  async branches(names: readonly string[], op: CallOptions): Promise<Map<string, string>> {
    await this.#uploadPack(op);
    const refs = names.map(refOf);
    const body = await this.#call('git-upload-pack', lsRefsRequest(refs), op);
    const found = parseRefs(body, refs);
    return new Map(names.flatMap((name) => entryOf(name, found.get(refOf(name)))));
  }

  /**
   * The commit of a branch, a tag or HEAD, or of a whole id, which is returned as it is. Undefined when the repository does not have the
   * name. Throws when it is the name of a branch and of a tag with different commits.
   */
  async resolve(name: string, op: CallOptions): Promise<ResolvedName | undefined> {
    if (isObjectId(name)) return { commit: name };
    const refs = name === 'HEAD' || name.startsWith('refs/') ? [name] : [refOf(name), `refs/tags/${name}`];
    await this.#uploadPack(op);
    const body = await this.#call('git-upload-pack', lsRefsRequest(refs), op);
    const [found, other] = parseRefs(body, refs);
    if (found === undefined) return undefined;
    if (other !== undefined && other[1] !== found[1])
      throw gitFailure(`${name} is a branch and a tag of the repository; name refs/heads/${name} or refs/tags/${name}`);
    const branch = name === 'HEAD' ? headBranch(body) : found[0];
    const isBranch = branch?.startsWith(BRANCHES) === true;
    return { commit: found[1], ...(isBranch ? { branch: branch.slice(BRANCHES.length) } : {}) };
  }

  /** The branches whose names have one reading. */
  async heads(op: CallOptions): Promise<Heads> {
    await this.#uploadPack(op);
    const body = await this.#call('git-upload-pack', lsRefsRequest(['HEAD', BRANCHES]), op);
    return { branches: parseHeads(body), head: headBranch(body)?.slice(BRANCHES.length) };
  }

  /** The history of a commit without what is known, checked. Throws for a repository that has not all of its history itself. */
  async since(commit: string, known: KnownCommits, limits: PackLimits, op: CallOptions): Promise<Clone> {
    const sent = await this.packSince(commit, known, op);
    return { commit, ...sent, objects: await readPack(sent.pack, limits, EVERYTHING) };
  }

  /** As `since`, but not checked. */
  async packSince(commit: string, known: KnownCommits, op: CallOptions): Promise<SentPack> {
    const body = await this.#call('git-upload-pack', sinceRequest(commit, known), op);
    const pack = packOf(body);
    if (shallowIn(body).length > 0)
      throw gitFailure('the repository of the server has a part of its history only; clone it in a new folder');
    return { pack, shallow: [] };
  }

  /** A commit with everything in it and the latest part of its history, as the pack that the server sent, and checked. */
  async clone(
    commit: string,
    { depth, limits }: { depth: number; limits: PackLimits },
    op: CallOptions,
  ): Promise<Clone> {
    const sent = await this.packOf(commit, depth, op);
    return { commit, ...sent, objects: await readPack(sent.pack, limits, EVERYTHING) };
  }

  /** As `clone`, but not checked. */
  async packOf(commit: string, depth: number, op: CallOptions): Promise<SentPack> {
    const body = await this.#call('git-upload-pack', cloneRequest(commit, depth), op);
    return { pack: packOf(body), shallow: shallowIn(body) };
  }

  /**
   * What is below a folder of a commit, `''` for its root: files, links and submodules, by their paths in the folder. Undefined when the
   * commit has no such folder. Hidden entries are left out. Throws for more than the limits.
   */
  async entriesBelow(
    folder: string,
    commit: string,
    limits: FolderLimits,
    op: CallOptions,
  ): Promise<Map<string, TreeEntry> | undefined> {
    const objects = await this.#objectsOf(commit, op);
    const root = folderIn(objects, rootOf(objects, commit), folder);
    return root === undefined ? undefined : listBelow((id) => treeIn(objects, id), root, limits);
  }

  /** The contents of files by their ids. Throws when the server does not send one of them. */
  async contents(ids: readonly string[], op: CallOptions): Promise<Map<string, Buffer>> {
    const wanted = [...new Set(ids)];
    if (wanted.length === 0) return new Map();
    const body = await this.#call('git-upload-pack', fetchObjectsRequest(wanted), op);
    const objects = await readPack(packOf(body), PACK_LIMITS, FILES);
    return new Map(wanted.map((id) => [id, contentOf(objects, id, 'blob')]));
  }

  /** The regular files directly in a folder of a commit, with their ids; empty when it has no such folder. */
  async filesIn(folder: string, commit: string, op: CallOptions): Promise<Map<string, string>> {
    const objects = await this.#objectsOf(commit, op);
    const id = folderIn(objects, rootOf(objects, commit), folder);
    const entries = id === undefined ? [] : treeIn(objects, id);
    return new Map(entries.filter(isRegularFile).map(({ name, id }) => [`${folder}/${name}`, id]));
  }

  /** Pushes one commit. Returns why the server refuses it; undefined when the branch has it. */
  async push(order: PushOrder, op: CallOptions): Promise<string | undefined> {
    const { branch, before, parent, changes, message } = order;
    const objects = await this.#objectsOf(parent, op);
    const edited = editTree(rootOf(objects, parent), changes, (id) => treeIn(objects, id));
    const commit = commitObject({ tree: edited.id, parent, message, at: this.#clock.now() });
    const pack = writePack([commit, ...edited.objects]);
    return this.pushPack({ branch, before, after: objectId(commit), pack }, op);
  }

  /** Moves one branch. Returns why the server refuses it; undefined when the branch has the commit. */
  async pushPack(
    { branch, before = NO_OBJECT, after, pack }: BranchUpdate,
    op: CallOptions,
  ): Promise<string | undefined> {
    const server = parseReceivePack(await this.#advertisement('git-receive-pack', op));
    const update = { ref: refOf(branch), before, after };
    const body = pushRequest(update, server, pack);
    return refusalIn(await this.#call('git-receive-pack', body, op), update.ref, server);
  }

  /** The commit and all its folders. */
  async #objectsOf(commit: string, op: CallOptions): Promise<PackObjects> {
    if (this.#last?.commit === commit) return this.#last.objects;
    const request = fetchRequest(commit, await this.#uploadPack(op));
    const objects = await readPack(packOf(await this.#call('git-upload-pack', request, op)));
    if (sizeOf(objects) <= MAX_KEPT_BYTES) this.#last = { commit, objects };
    return objects;
  }

  async #uploadPack(op: CallOptions) {
    return parseUploadPack(await this.#advertisement('git-upload-pack', op));
  }

  async #advertisement(service: Service, op: CallOptions): Promise<Buffer> {
    const { contentType, bytes } = await this.#send({ path: `info/refs?service=${service}` }, op);
    return expected(contentType, `application/x-${service}-advertisement`, bytes);
  }

  async #call(service: Service, body: Buffer, op: CallOptions): Promise<Buffer> {
    const contentType = `application/x-${service}-request`;
    const response = await this.#send({ path: service, body, contentType }, op);
    return expected(response.contentType, `application/x-${service}-result`, response.bytes);
  }
}

const MAX_KEPT_BYTES = 2 * 1_048_576;
function sizeOf(objects: PackObjects): number {
  return [...objects.values()].reduce((sum, { content }) => sum + content.length, 0);
}

const BRANCHES = 'refs/heads/';

function refOf(branch: string): string {
  return `${BRANCHES}${branch}`;
}

function entryOf(name: string, id: string | undefined): [string, string][] {
  return id === undefined ? [] : [[name, id]];
}

/** A page for users, such as the login page of a proxy, is no answer of Git. */
function expected(contentType: string, wanted: string, bytes: Buffer): Buffer {
  if (contentType === wanted) return bytes;
  throw gitFailure(
    'the server does not answer as a Git server over smart HTTP does; check the URL, which is git.url of a connection',
  );
}
