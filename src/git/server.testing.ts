import { commitObject } from './objects/commit.ts';
import { type GitObject, NO_OBJECT, objectId } from './objects/object-id.ts';
import { treeObject } from './objects/tree.ts';
import { writePack } from './pack/pack-writer.ts';
import { DELIMITER, FLUSH, packet } from './protocol/pkt-line.ts';
import type { GitTransport } from './transport.ts';

/** The answers of a server, in the order in which a push to a new branch asks for them. */
export interface Answers {
  readonly advertisement: Buffer;
  readonly refs: Buffer;
  readonly pack: Buffer;
  readonly receiveAdvertisement: Buffer;
  readonly report: Buffer;
}

const FILE = objectId({ type: 'blob', content: Buffer.from('hello\n') });
const FOLDER = treeObject([{ mode: '100644', name: 'a.txt', id: FILE }]);
const ROOT = treeObject([{ mode: '40000', name: 'tools', id: objectId(FOLDER) }]);
const COMMIT = commitObject({ tree: objectId(ROOT), parent: NO_OBJECT, message: 'test', at: new Date(0) });

/** One commit with the file `tools/a.txt`. */
export const SERVED = { file: FILE, folder: FOLDER, root: ROOT, commit: COMMIT, objects: [COMMIT, ROOT, FOLDER] };

export const band = (number: number, content: Buffer): Buffer =>
  Buffer.concat([Buffer.from((content.length + 5).toString(16).padStart(4, '0')), Buffer.from([number]), content]);

export const packAnswer = (objects: readonly GitObject[], pack = writePack(objects)): Buffer =>
  Buffer.concat([
    packet('shallow-info\n'),
    packet(`shallow ${objectId(COMMIT)}\n`),
    DELIMITER,
    packet('packfile\n'),
    band(2, Buffer.from('Counting objects\n')),
    band(1, pack),
    FLUSH,
  ]);

export const report = (...lines: string[]): Buffer =>
  Buffer.concat([band(1, Buffer.concat([...lines.map((line) => packet(`${line}\n`)), FLUSH])), FLUSH]);

/** What an honest server answers when the branch `new` is pushed. */
export function honestAnswers(): Answers {
  const capabilities = [
    'version 2',
    'agent=git/2.39.5',
    'ls-refs=unborn',
    'fetch=shallow wait-for-done filter',
    'object-format=sha1',
  ];
  const receive = `${objectId(COMMIT)} refs/heads/main\0report-status side-band-64k object-format=sha1`;
  return {
    advertisement: Buffer.concat([
      packet('# service=git-upload-pack\n'),
      FLUSH,
      ...capabilities.map((line) => packet(`${line}\n`)),
      FLUSH,
    ]),
    refs: Buffer.concat([
      packet(`${objectId(COMMIT)} refs/heads/main\n`),
      packet(`${NO_OBJECT} refs/heads/main2\n`),
      FLUSH,
    ]),
    pack: packAnswer(SERVED.objects),
    receiveAdvertisement: Buffer.concat([packet('# service=git-receive-pack\n'), FLUSH, packet(`${receive}\n`), FLUSH]),
    report: report('unpack ok', 'ok refs/heads/new'),
  };
}

export function transportOf(answers: Answers, requests: Buffer[] = []): GitTransport {
  return async ({ path, body }) => {
    const service = path.replace('info/refs?service=', '');
    const sent = Buffer.from(body ?? []);
    if (body !== undefined) requests.push(sent);
    const [kind, bytes] = answerTo(service, body === undefined ? undefined : sent.toString('latin1'), answers);
    return { contentType: `application/x-${service}-${kind}`, bytes };
  };
}

function answerTo(service: string, body: string | undefined, answers: Answers): [kind: string, bytes: Buffer] {
  const isWrite = service === 'git-receive-pack';
  if (body === undefined) return ['advertisement', isWrite ? answers.receiveAdvertisement : answers.advertisement];
  if (isWrite) return ['result', answers.report];
  return ['result', body.includes('command=ls-refs') ? answers.refs : answers.pack];
}
