import type { CallOptions } from '../lib/call-options.ts';
import type { Clock } from '../lib/clock.ts';
import { gitFailure } from './failure.ts';
import { commitObject, treeOf } from './objects/commit.ts';
import { editTree, type TreeChange } from './objects/edit-tree.ts';
import { type GitObject, NO_OBJECT, objectId } from './objects/object-id.ts';
import { isRegularFile, isTree, parseTree, type TreeEntry } from './objects/tree.ts';
import { type PackObjects, readPack } from './pack/pack-reader.ts';
import { writePack } from './pack/pack-writer.ts';
import { parseReceivePack, pushRequest, refusalIn } from './protocol/receive-pack.ts';
import { fetchRequest, lsRefsRequest, packOf, parseRefs, parseUploadPack } from './protocol/upload-pack.ts';
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

  /** The regular files directly in a folder of a commit, with their ids; empty when it has no such folder. */
  async filesIn(folder: string, commit: string, op: CallOptions): Promise<Map<string, string>> {
    const objects = await this.#objectsOf(commit, op);
    let entries = treeIn(objects, rootOf(objects, commit));
    for (const segment of folder.split('/')) {
      const found = entries.find(({ name }) => name === segment);
      if (found === undefined || !isTree(found)) return new Map();
      entries = treeIn(objects, found.id);
    }
    return new Map(entries.filter(isRegularFile).map(({ name, id }) => [`${folder}/${name}`, id]));
  }

  /** Pushes one commit. Returns why the server refuses it; undefined when the branch has it. */
  async push(order: PushOrder, op: CallOptions): Promise<string | undefined> {
    const { branch, before = NO_OBJECT, parent, changes, message } = order;
    const objects = await this.#objectsOf(parent, op);
    const edited = editTree(rootOf(objects, parent), changes, (id) => treeIn(objects, id));
    const commit = commitObject({ tree: edited.id, parent, message, at: this.#clock.now() });
    const server = parseReceivePack(await this.#advertisement('git-receive-pack', op));
    const update = { ref: refOf(branch), before, after: objectId(commit) };
    const body = pushRequest(update, server, writePack([commit, ...edited.objects]));
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
/** Every repository has it, so a server may leave it out. */
const EMPTY: GitObject = { type: 'tree', content: Buffer.alloc(0) };
const EMPTY_TREE = objectId(EMPTY);

function sizeOf(objects: PackObjects): number {
  return [...objects.values()].reduce((sum, { content }) => sum + content.length, 0);
}

function refOf(branch: string): string {
  return `refs/heads/${branch}`;
}

function entryOf(name: string, id: string | undefined): [string, string][] {
  return id === undefined ? [] : [[name, id]];
}

function rootOf(objects: PackObjects, commit: string): string {
  return treeOf(contentOf(objects, commit, 'commit'));
}

function treeIn(objects: PackObjects, id: string): TreeEntry[] {
  return parseTree(contentOf(objects, id, 'tree'));
}

/** An object under its own id: what a server leaves out or replaces is missing. */
function contentOf(objects: PackObjects, id: string, type: GitObject['type']): Buffer {
  const found = id === EMPTY_TREE ? EMPTY : objects.get(id);
  if (found?.type === type) return found.content;
  throw gitFailure(`the server did not send ${type} ${id}`);
}

/** A page for users, such as the login page of a proxy, is no answer of Git. */
function expected(contentType: string, wanted: string, bytes: Buffer): Buffer {
  if (contentType === wanted) return bytes;
  throw gitFailure('the server does not answer as a Git server over smart HTTP does; check git.url');
}
