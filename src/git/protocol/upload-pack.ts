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

/** Asks for branches by their whole names. */
export function lsRefsRequest(refs: readonly string[]): Buffer {
  const prefixes = refs.map((ref) => packet(`ref-prefix ${ref}\n`));
  return Buffer.concat([...commandOf('ls-refs'), ...prefixes, FLUSH]);
}

/** The ids of those of `refs` that exist. A server answers with all that begin with a name. */
export function parseRefs(body: Buffer, refs: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const { payload } of packetsOf(body)) {
    if (payload === undefined) break;
    const [id = '', name = ''] = lineOf(payload).split(' ');
    if (!refs.includes(name)) continue;
    if (!isObjectId(id) || found.has(name)) throw gitFailure('the server sent a branch without a valid object id');
    found.set(name, id);
  }
  return found;
}

/** Asks for one commit with its folders, and without the contents of files when the server permits it. */
export function fetchRequest(commit: string, { canFilter }: UploadPackCapabilities): Buffer {
  const wanted = ['no-progress', `want ${commit}`, 'deepen 1', ...(canFilter ? ['filter blob:none'] : []), 'done'];
  return Buffer.concat([...commandOf('fetch'), ...wanted.map((line) => packet(`${line}\n`)), FLUSH]);
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
