import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { deflateSync } from 'node:zlib';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { systemClock } from '../lib/clock.ts';
import { type GitObject, NO_OBJECT, objectId } from './objects/object-id.ts';
import { treeObject } from './objects/tree.ts';
import { type PackLimits, PACK_LIMITS, readPack } from './pack/pack-reader.ts';
import { writePack } from './pack/pack-writer.ts';
import { FLUSH, packet } from './protocol/pkt-line.ts';
import { GitRemote } from './remote.ts';
import { type Answers, band, honestAnswers, packAnswer, report, SERVED, transportOf } from './server.testing.ts';

const op = { signal: NEVER_ABORTED, deadline: Infinity, key: 'test' };
const MAIN = objectId(SERVED.commit);
const REFUSED = { code: 'TEMPER_CONNECTION_FAILED', retry: 'backoff' };

/** Reads `main` and pushes a file to a new branch, as a promotion does. */
async function pushTo(answers: Answers): Promise<string | undefined> {
  const remote = new GitRemote(transportOf(answers), systemClock);
  const parent = (await remote.branches(['main', 'new'], op)).get('main') ?? assert.fail('no main');
  const changes = [{ path: 'tools/b.txt', text: 'b\n', previous: undefined }];
  return remote.push({ branch: 'new', before: undefined, parent, changes, message: 'test' }, op);
}

/** A pack of entries as they are, with a right checksum. */
function rawPack(count: number, ...entries: Buffer[]): Buffer {
  const header = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');
  header.writeUInt32BE(count, 8);
  const pack = Buffer.concat([header, ...entries]);
  return Buffer.concat([pack, createHash('sha1').update(pack).digest()]);
}

const entry = (type: number, size: number, content: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(size < 16 ? [(type << 4) | size] : [128 | (type << 4) | (size & 15), size >> 4]),
    content,
  ]);
const delta = (base: GitObject, ...bytes: number[]): Buffer =>
  entry(7, bytes.length, Buffer.concat([Buffer.from(objectId(base), 'hex'), deflateSync(Buffer.from(bytes))]));

describe('a Git server that keeps to the protocol', () => {
  it('a commit is pushed on top of the branch that was read, and only to the branch that was named', async () => {
    const requests: Buffer[] = [];
    const remote = new GitRemote(transportOf(honestAnswers(), requests), systemClock);
    assert.deepEqual(await remote.branches(['main', 'new'], op), new Map([['main', MAIN]]));
    assert.deepEqual(await remote.filesIn('tools', MAIN, op), new Map([['tools/a.txt', SERVED.file]]));
    assert.deepEqual(await remote.filesIn('tools/a.txt', MAIN, op), new Map(), 'a file is no folder');
    const changes = [
      { path: 'tools/b.txt', text: 'b\n', previous: undefined },
      { path: 'tools/a.txt', text: undefined, previous: SERVED.file },
    ];
    const order = { branch: 'new', before: undefined, parent: MAIN, changes, message: 'Share it' };
    assert.equal(await remote.push(order, op), undefined);
    const sent = requests.at(-1) ?? assert.fail('nothing was pushed');
    const [, before, after, ref] = /^....(\S+) (\S+) (\S+)\0/.exec(sent.toString('latin1')) ?? [];
    assert.deepEqual([before, ref], [NO_OBJECT, 'refs/heads/new']);
    const objects = await readPack(sent.subarray(sent.indexOf('PACK')));
    const commit = objects.get(after ?? '')?.content.toString() ?? '';
    assert.match(commit, new RegExp(`^tree [0-9a-f]{40}\\nparent ${MAIN}\\nauthor Temper [^]*\\n\\nShare it\\n$`));
    assert.equal(requests.filter((one) => one.includes('command=fetch')).length, 1, 'a commit is read once');
  });

  it('a refusal is returned with the words of the server, in one printable line', async () => {
    const answers = { ...honestAnswers(), report: report('unpack ok', 'ng refs/heads/new hook\u001b[31m declined') };
    assert.equal(await pushTo(answers), 'hook\\u{1b}[31m declined');
    const unpack = { ...honestAnswers(), report: report('unpack disk full') };
    assert.equal(await pushTo(unpack), 'disk full');
  });
});

describe('a Git server that does not keep to the protocol', () => {
  const honest = honestAnswers();
  const text = (...lines: string[]): Buffer => Buffer.concat([...lines.map((line) => packet(`${line}\n`)), FLUSH]);
  const foreign = treeObject([{ mode: '100644', name: 'evil.txt', id: SERVED.file }]);
  const tree = (...entries: string[]): GitObject => ({
    type: 'tree',
    content: Buffer.concat(entries.map((one) => Buffer.concat([Buffer.from(`${one}\0`), Buffer.alloc(20, 1)]))),
  });
  /** A commit whose root is this tree, under the id that the branch has. */
  const rooted = (root: GitObject): Partial<Answers> => {
    const content = Buffer.from(`tree ${objectId(root)}\n\ntest\n`);
    const commit: GitObject = { type: 'commit', content };
    return { refs: text(`${objectId(commit)} refs/heads/main`), pack: packAnswer([commit, root]) };
  };
  const lies: [what: string, answers: Partial<Answers>, message: RegExp][] = [
    ['a page for users', { advertisement: Buffer.from('<html>') }, /not in the form of Git/],
    ['a packet that ends beyond the body', { advertisement: Buffer.from('ffff version 2') }, /not in the form of Git/],
    ['a packet of three bytes', { refs: Buffer.from('0003') }, /not in the form of Git/],
    ['an error', { refs: packet('ERR access denied\u001b[2J') }, /refuses: access denied\\u\{1b\}\[2J/],
    ['an old protocol', { advertisement: text(`${MAIN} HEAD\0multi_ack`) }, /no version 2/],
    ['no shallow fetch', { advertisement: text('version 2', 'ls-refs', 'fetch=filter') }, /no shallow fetch/],
    ['SHA-256', { advertisement: text('version 2', 'ls-refs', 'fetch=shallow', 'object-format=sha256') }, /than sha1/],
    ['a branch without an id', { refs: text('main refs/heads/main') }, /without a valid object id/],
    ['a branch twice', { refs: text(`${MAIN} refs/heads/main`, `${NO_OBJECT} refs/heads/main`) }, /without a valid/],
    ['no pack', { pack: text('shallow-info') }, /sent no pack/],
    [
      'an error in the pack',
      { pack: Buffer.concat([packet('packfile\n'), band(3, Buffer.from('gone'))]) },
      /refuses: gone/,
    ],
    ['an unknown band', { pack: Buffer.concat([packet('packfile\n'), band(9, Buffer.from('x'))]) }, /unknown band/],
    ['another commit', { pack: packAnswer([foreign, SERVED.root, SERVED.folder]) }, /did not send commit/],
    ['no folder', { pack: packAnswer([SERVED.commit, SERVED.root]) }, /did not send tree/],
    ['another folder', { pack: packAnswer([SERVED.commit, SERVED.root, foreign]) }, /did not send tree/],
    ['a name twice', rooted(tree('100644 tools', '100644 tools-1', '40000 tools')), /folder that is not in the form/],
    ['names out of order', rooted(tree('100644 b', '100644 a')), /folder that is not in the form/],
    ['a name with a slash', rooted(tree('100644 a/b')), /folder that is not in the form/],
    ['a cut folder', rooted({ type: 'tree', content: Buffer.from('100644 a\0xyz') }), /folder that is not in the form/],
    ['a commit without a tree', commitWithoutTree(), /commit without a tree/],
    ['a link as the folder', rooted(tree('120000 tools')), /other than a folder/],
    ['no report', { receiveAdvertisement: text(`${MAIN} refs/heads/main\0side-band-64k`) }, /does not report/],
    ['a SHA-256 remote', { receiveAdvertisement: text(`${MAIN} a\0report-status object-format=sha256`) }, /than sha1/],
    ['a report of another branch', { report: report('unpack ok', 'ok refs/heads/main') }, /did not report what became/],
    ['an empty report', { report: Buffer.alloc(0) }, /did not report what became/],
    ['two reports', { report: report('unpack ok', 'ok refs/heads/new', 'ng refs/heads/new x') }, /did not report/],
  ];
  function commitWithoutTree(): Partial<Answers> {
    const commit: GitObject = { type: 'commit', content: Buffer.from('parent x\n') };
    return { refs: text(`${objectId(commit)} refs/heads/main`), pack: packAnswer([commit]) };
  }

  for (const [what, answers, message] of lies) {
    it(`${what} is an error that may be retried`, async () => {
      await assert.rejects(pushTo({ ...honest, ...answers }), { ...REFUSED, message });
    });
  }

  it('an answer with another media type is an error that names the field', async () => {
    const send = async () => ({ contentType: 'text/html', bytes: honest.advertisement });
    const remote = new GitRemote(send, systemClock);
    await assert.rejects(remote.branches(['main'], op), { ...REFUSED, message: /check the URL, which is git\.url/ });
  });
});

describe('a pack of a hostile server', () => {
  const base: GitObject = { type: 'tree', content: Buffer.alloc(0) };
  const emptyTree = entry(2, 0, deflateSync(base.content));
  const zeros = deflateSync(Buffer.alloc(4_096));
  const cut = writePack(SERVED.objects);
  cut[cut.length - 1] = (cut.at(-1) ?? 0) ^ 1;
  const packs: [what: string, pack: Buffer, message: RegExp, limits?: Partial<PackLimits>][] = [
    ['nothing', Buffer.alloc(0), /form of Git/],
    ['another version', rawPack(0).fill(3, 7, 8), /form of Git/],
    ['a wrong checksum', cut, /form of Git/],
    ['more objects than it has', rawPack(2, emptyTree), /form of Git/],
    ['fewer objects than it has', rawPack(0, emptyTree), /form of Git/],
    ['too many objects', rawPack(200_000), /too large to be read; permit filters/],
    ['a size that does not end', rawPack(1, Buffer.alloc(30, 255)), /form of Git/],
    ['an unknown type', rawPack(1, entry(5, 0, deflateSync(Buffer.alloc(0)))), /form of Git/],
    ['a delta by offset, which was not asked for', rawPack(1, entry(6, 0, Buffer.alloc(9))), /form of Git/],
    ['more bytes than it states', rawPack(1, entry(2, 100, zeros)), /form of Git/],
    ['fewer bytes than it states', rawPack(1, entry(2, 2_000, deflateSync(Buffer.alloc(9)))), /form of Git/],
    ['no compressed bytes', rawPack(1, entry(2, 9, Buffer.from('not zlib!'))), /form of Git/],
    ['an object beyond the limit', rawPack(1, entry(3, 2_000, zeros)), /too large/, { objectBytes: 1_999 }],
    [
      'all objects beyond the limit',
      rawPack(2, entry(3, 9, deflateSync(Buffer.alloc(9))), entry(3, 9, zeros)),
      /too large/,
      { totalBytes: 17 },
    ],
    [
      'a delta that makes too much',
      rawPack(2, emptyTree, delta(base, 0, 255, 127, 1, 65)),
      /too large/,
      { objectBytes: 999 },
    ],
    ['a delta of another base', rawPack(2, emptyTree, delta(base, 5, 1, 1, 65)), /does not fit its base/],
    ['a delta that copies what is not there', rawPack(2, emptyTree, delta(base, 0, 4, 0x90, 4)), /does not fit/],
    ['a delta with the reserved operation', rawPack(2, emptyTree, delta(base, 0, 1, 0)), /does not fit/],
    ['a delta with fewer bytes than it states', rawPack(2, emptyTree, delta(base, 0, 9, 1, 65)), /does not fit/],
    ['a delta with more bytes than it states', rawPack(2, emptyTree, delta(base, 0, 1, 2, 65, 65)), /does not fit/],
    ['a delta that ends in a number', rawPack(2, emptyTree, delta(base, 0, 255)), /does not fit/],
  ];
  for (const [what, pack, message, limits] of packs) {
    it(`${what} is refused`, async () => {
      await assert.rejects(readPack(pack, { ...PACK_LIMITS, ...limits }), { ...REFUSED, message });
    });
  }

  it('contents of files and deltas without a base are dropped', async () => {
    const file = entry(3, 6, deflateSync(Buffer.from('hello\n')));
    const resting = delta({ type: 'blob', content: Buffer.from('hello\n') }, 6, 1, 1, 65);
    assert.deepEqual(await readPack(rawPack(2, file, resting)), new Map());
  });
});
