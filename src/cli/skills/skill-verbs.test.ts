import assert from 'node:assert/strict';
import { access, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { BareRepository } from '../../../test/support/gitops/bare-repository.ts';
import { type GitHttpServer, startGitHttpServer } from '../../../test/support/gitops/git-http-server.ts';
import { sha256 } from '../../lib/canonical.ts';
import { isTemperError } from '../../lib/errors.ts';
import { artifactManifest, descriptorOf, SKILL } from '../../oci/manifest.ts';
import { type FakeRegistry, REPOSITORY, startFakeRegistry } from '../../oci/registry.testing.ts';
import { aTerminal } from '../io.testing.ts';
import { pullSkill, type SkillPullOptions } from './skill-pull.ts';
import { pushSkill } from './skill-push.ts';

const SKILL_TEXT = '---\nname: notes\ndescription: How notes are written.\n---\n# Notes\n\nRead references/style.md.\n';
const FILES = { 'SKILL.md': SKILL_TEXT, 'references/style.md': 'Be brief.\n' };

let root: string;
let registry: FakeRegistry;
let repository: BareRepository;
let server: GitHttpServer;

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'temper-skill-verbs-'));
  registry = await startFakeRegistry();
  repository = await BareRepository.create({
    'README.md': 'x',
    'skills/notes/SKILL.md': SKILL_TEXT,
    'skills/notes/references/style.md': 'Be brief.\n',
    'skills/notes/.hidden': 'not read',
  });
  await repository.git('config', 'uploadpack.allowFilter', 'true');
  server = await startGitHttpServer(repository.folder);
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await repository[Symbol.asyncDispose]();
  await registry[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});
afterEach(async () => {
  registry.hostile = () => false;
  registry.blobs.clear();
  registry.manifests.clear();
  for (const name of await readdir(root)) await rm(join(root, name), { recursive: true, force: true });
});

const oci = (name = ':v1'): string => `oci://localhost:${registry.port}/${REPOSITORY}${name}`;
const anIo = () => ({ ...aTerminal(), cwd: root, environment: { HOME: root, XDG_CONFIG_HOME: join(root, 'config') } });

async function written(files: Record<string, string>, folder = 'notes'): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, folder, path)), { recursive: true });
    await writeFile(join(root, folder, path), text);
  }
  return folder;
}

async function push(folder: string, reference = oci()) {
  const io = anIo();
  const code = await pushSkill({ folder, reference, output: 'json' }, io);
  return { code, errors: io.errors(), report: code === 0 ? (JSON.parse(io.printed()) as Record<string, string>) : {} };
}

async function pull(reference: string, changes: Partial<SkillPullOptions> = {}) {
  const io = anIo();
  const code = await pullSkill({ reference, folder: 'got/notes', output: 'text', ...changes }, io);
  return { code, printed: io.printed(), errors: io.errors() };
}

/** All files below a folder with their texts. */
async function textsIn(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name));
  const texts = files
    .sort()
    .map(async (path) => [path.slice(join(root, folder).length + 1), await readFile(path, 'utf8')]);
  return Object.fromEntries(await Promise.all(texts)) as Record<string, string>;
}

async function assertNothingPlaced(): Promise<void> {
  assert.deepEqual(await readdir(join(root, 'got')), []);
}

describe('a skill in an OCI registry', () => {
  it('the files that an agent gets are pushed, and pulled with their source', async () => {
    const folder = await written({
      ...FILES,
      '.git/config': 'x',
      'logo.txt': 'a\u200bb',
      '.temper-source.json': '{"source":"x"}',
    });
    const { report, errors } = await push(folder);
    assert.match(errors, /^warning: .*logo\.txt: .*left out/);
    assert.deepEqual(report['capabilities'], ['skill:notes']);
    await mkdir(join(root, 'got'));
    const { printed } = await pull(oci());
    const placed = `skill:notes of ${oci()}@${report['manifest']} is in ${join(root, 'got/notes')}`;
    assert.equal(printed, `${placed}\nskill:notes: How notes are written.\n`);
    const source = `${JSON.stringify({ source: `${oci()}@${report['manifest']}`, reference: oci() })}\n`;
    assert.deepEqual(await textsIn('got'), {
      'notes/.temper-source.json': source,
      'notes/SKILL.md': FILES['SKILL.md'],
      'notes/references/style.md': FILES['references/style.md'],
    });
    const modes = ['notes/SKILL.md', 'notes/references/style.md'].map((path) => lstat(join(root, 'got', path)));
    assert.ok(
      (await Promise.all(modes)).every(({ mode }) => (mode & 0o133) === 0),
      'no user may execute a file',
    );
  });

  it('the same folder has the same digest, and a push that moves the tag says so', async () => {
    const folder = await written(FILES);
    const { report: first } = await push(folder);
    assert.deepEqual((await push(folder)).report, first);
    await writeFile(join(root, folder, 'references/style.md'), 'Be kind.\n');
    const { report: second } = await push(folder);
    assert.equal(second['previous'], first['manifest']);
  });

  it('a tag that moved is named, and a pinned digest pulls what it names', async () => {
    const folder = await written(FILES);
    const { report: first } = await push(folder);
    await mkdir(join(root, 'got'));
    await pull(oci());
    await writeFile(join(root, folder, 'references/style.md'), 'Be kind.\n');
    const { report: second } = await push(folder);
    await assert.rejects(pull(oci()), { code: 'TEMPER_USAGE', message: /replace it with --replace/ });
    const replaced = await pull(oci(), { replace: true });
    assert.match(replaced.printed, new RegExp(`\\n${oci()} moved; it was ${oci()}@${first['manifest']}\\n$`));
    assert.equal((await textsIn('got'))['notes/references/style.md'], 'Be kind.\n');
    const pinned = await pull(oci(`:v1@${first['manifest']}`), { replace: true });
    assert.match(pinned.printed, new RegExp(`\\nthe tag has another skill now: ${second['manifest']}\\n$`));
    assert.equal((await textsIn('got'))['notes/references/style.md'], 'Be brief.\n');
    assert.deepEqual(await readdir(join(root, 'got')), ['notes']);
    await assert.rejects(push(folder, oci(`@${first['manifest']}`)), { code: 'TEMPER_USAGE', message: /name a tag/ });
  });

  it('a folder with an error is not pushed, and a folder that no pull made is not replaced', async () => {
    assert.equal((await push(await written({ 'SKILL.md': '# none' }, 'broken'))).code, 1);
    assert.equal(registry.manifests.size, 0);
    await push(await written(FILES));
    for (const folder of ['notes', 'file', 'link']) {
      if (folder === 'file') await writeFile(join(root, 'file'), 'x');
      if (folder === 'link') await symlink(join(root, 'notes'), join(root, 'link'));
      await assert.rejects(pull(oci(), { folder, replace: true }), { code: 'TEMPER_USAGE', message: /was not pulled/ });
    }
    await assert.rejects(pull(oci(), { folder: 'none/notes' }), { code: 'TEMPER_USAGE', message: /does not exist/ });
  });

  const file = (title: string, text = 'x') => ({ title, text });
  const document = file('SKILL.md', SKILL_TEXT);
  const manifestOf = (files: readonly { title: string; text: string }[], kind = SKILL): string => {
    for (const { text } of files) registry.blobs.set(sha256(text), text);
    return artifactManifest(kind, files, { annotations: {} });
  };
  const edited = (change: (manifest: { layers: Record<string, unknown>[] }) => void): string => {
    const manifest = JSON.parse(manifestOf([document, file('a.md')])) as { layers: Record<string, unknown>[] };
    change(manifest);
    return JSON.stringify(manifest);
  };
  const layer = (type: string) => ({
    mediaType: type,
    digest: sha256('x'),
    size: 1,
    annotations: { 'org.opencontainers.image.title': 'a.tar' },
  });

  /** Each artifact is refused as a whole. */
  const hostile: [what: string, manifest: () => string, message: RegExp][] = [
    ['a path that leads out', () => manifestOf([document, file('../a.md')]), /no permitted path/],
    ['an absolute path', () => manifestOf([document, file('/etc/passwd')]), /no permitted path/],
    ['a path with a hidden folder', () => manifestOf([document, file('a/../../b')]), /no permitted path/],
    ['the file that names the source', () => manifestOf([document, file('.temper-source.json')]), /no permitted path/],
    ['a path of Git', () => manifestOf([document, file('.git/config')]), /no permitted path/],
    ['a path of a drive', () => manifestOf([document, file('c:\\a.md')]), /no permitted path/],
    ['a path with a line break', () => manifestOf([document, file('a\nb')]), /no permitted path/],
    ['a path that is too deep', () => manifestOf([document, file('a/a/a/a/a/a/a/a/a')]), /no permitted path/],
    [
      'a path that is too long',
      () => manifestOf([document, file(Array(5).fill('a'.repeat(60)).join('/'))]),
      /no permitted path/,
    ],
    ['a layer without a path', () => edited(({ layers }) => delete layers[1]?.['annotations']), /no permitted path/],
    ['a path twice', () => manifestOf([document, file('a.md'), file('a.md', 'y')]), /two layers have the path/],
    [
      'an archive',
      () => edited(({ layers }) => layers.push(layer('application/vnd.oci.image.layer.v1.tar+gzip'))),
      /is of the type/,
    ],
    [
      'a layer that lies about its size',
      () => edited(({ layers }) => (layers[1]!['size'] = 2)),
      /does not have the digest/,
    ],
    [
      'a layer with another content',
      () =>
        edited(({ layers }) =>
          Object.assign(layers[1]!, descriptorOf(SKILL.layerType, 'x'), {
            digest: registry.blobs.set(sha256('y'), 'x') && sha256('y'),
          }),
        ),
      /does not have the digest/,
    ],
    ['a large file', () => edited(({ layers }) => (layers[1]!['size'] = 131_073)), /more than 131072 bytes/],
    [
      'a size of many terabytes',
      () => edited(({ layers }) => (layers[1]!['size'] = 2 ** 50)),
      /more than 131072 bytes/,
    ],
    [
      'many files',
      () => manifestOf([document, ...Array.from({ length: 66 }, (_, n) => file(`f${n}`))]),
      /not 1 to 66 layers/,
    ],
    [
      'more bytes than a skill has',
      () => manifestOf([document, ...Array.from({ length: 7 }, (_, n) => file(`f${n}`, `${n}`.repeat(130_000)))]),
      /more than 786432 bytes/,
    ],
    [
      'a tool',
      () => manifestOf([document], { ...SKILL, artifactType: 'application/vnd.temper.tool.v1' }),
      /not pushed by temper skill push/,
    ],
    [
      'an image for several platforms',
      () => '{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}',
      /several platforms/,
    ],
    ['no JSON', () => '<html>', /not a JSON object/],
  ];
  for (const [what, manifest, message] of hostile) {
    it(`an artifact with ${what} leaves no file`, async () => {
      registry.manifests.set('v1', manifest());
      await mkdir(join(root, 'got'));
      await assert.rejects(
        pull(oci()),
        (error) => isTemperError(error, 'TEMPER_OCI_CONTENT_INVALID') && message.test(error.message),
      );
      await assertNothingPlaced();
    });
  }

  const refused: [what: string, files: { title: string; text: string }[], message: RegExp][] = [
    ['names that some disks do not tell apart', [document, file('a.md'), file('A.md')], /is the name of another file/],
    ['a file that is a folder too', [document, file('a'), file('a/b')], /is the name of another file or folder/],
    ['no document', [file('README.md')], /neither SKILL\.md nor CAPABILITY\.yaml/],
    [
      'the name of a built-in tool',
      [file('SKILL.md', SKILL_TEXT.replace('notes', 'finish'))],
      /a built-in tool is named finish/,
    ],
    ['invisible instructions', [file('SKILL.md', `${SKILL_TEXT}\u{e0041}`)], /invisible character/],
    ['hooks', [file('SKILL.md', SKILL_TEXT.replace('name:', 'hooks: {a: b}\nname:'))], /hooks/],
    ['a NUL in its document', [file('SKILL.md', `${SKILL_TEXT}\0`)], /not UTF-8 text/],
  ];
  for (const [what, files, message] of refused) {
    it(`a skill with ${what} fails the check and leaves no file`, async () => {
      registry.manifests.set('v1', manifestOf(files));
      await mkdir(join(root, 'got'));
      const { code, errors } = await pull(oci());
      assert.equal(code, 1);
      assert.match(errors, message);
      await assertNothingPlaced();
    });
  }

  it('a pull that breaks off in the middle leaves the folder before as it was', async () => {
    await push(await written(FILES));
    await mkdir(join(root, 'got'));
    await pull(oci());
    const texts = await textsIn('got');
    registry.hostile = (request, response) => {
      const breaks = request.url?.includes('/blobs/') === true;
      if (breaks) response.destroy();
      return breaks;
    };
    await assert.rejects(pull(oci(), { replace: true }), { code: 'TEMPER_OCI_FAILED' });
    assert.deepEqual(await textsIn('got'), texts);
  });
});

describe('a skill in a Git repository', () => {
  const git = (rest: string): string => `${server.url}${rest}`;

  it('a folder at a branch, a tag and a commit is pulled with the commit as its source', async () => {
    const commit = await repository.git('rev-parse', 'main');
    await repository.git(
      '-c',
      'user.name=u',
      '-c',
      'user.email=u@example.com',
      'tag',
      '-f',
      '-a',
      '-m',
      'x',
      'v1',
      'main',
    );
    await mkdir(join(root, 'got'));
    for (const [index, name] of ['', '#', '#main', '#v1', '#refs/heads/main', `#${commit}`].entries()) {
      const folder = `got/notes-${index}`;
      const { printed } = await pull(git(`${name}:skills/notes`), { folder, output: 'json' });
      const { source, commit: printedCommit } = JSON.parse(printed) as Record<string, string>;
      assert.deepEqual([source, printedCommit], [git(`#${commit}:skills/notes`), commit]);
      const { '.temper-source.json': record, ...texts } = await textsIn(folder);
      assert.deepEqual(texts, FILES);
      assert.equal((JSON.parse(record ?? '') as { reference: string }).reference, git(`${name}:skills/notes`));
    }
    assert.ok(
      server.requests.every((path) => /^\/repository\.git\/(?:info\/refs\?service=)?git-upload-pack$/.test(path)),
    );
  });

  it('a server without filters sends the same files, and a branch that moved is named', async () => {
    await repository.git('config', 'uploadpack.allowFilter', 'false');
    const before = await repository.git('rev-parse', 'main');
    await mkdir(join(root, 'got'));
    await pull(git('#main:skills/notes'));
    await repository.commit('main', { 'skills/notes/references/style.md': 'Be kind.\n' });
    const { printed } = await pull(git('#main:skills/notes'), { replace: true });
    assert.match(printed, new RegExp(`#main:skills/notes moved; it was \\S+#${before}:skills/notes\\n$`));
    assert.equal((await textsIn('got'))['notes/references/style.md'], 'Be kind.\n');
    await repository.commit('main', { 'skills/notes/references/style.md': 'Be brief.\n' });
    await repository.git('config', 'uploadpack.allowFilter', 'true');
  });

  it('a name, a commit, a folder and a repository that do not exist are named', async () => {
    await mkdir(join(root, 'got'));
    await assert.rejects(pull(git('#none')), { code: 'TEMPER_NOT_FOUND', message: /no branch or tag none/ });
    await assert.rejects(pull(git(':none')), { code: 'TEMPER_NOT_FOUND', message: /no folder none/ });
    await assert.rejects(pull(git(`#${'1'.repeat(40)}`)), {
      code: 'TEMPER_CONNECTION_FAILED',
      message: /not our ref|refuses/,
    });
    const other = server.url.replace('/repository.git', '/other.git');
    await assert.rejects(pull(other), {
      code: 'TEMPER_CONNECTION_FAILED',
      message: /does not exist, or is not public/,
    });
    await repository.git('branch', '-f', 'both', 'main');
    await repository.git('tag', '-f', 'both', await repository.git('commit-tree', '-m', 'x', 'main^{tree}'));
    await assert.rejects(pull(git('#both:skills/notes')), { message: /a branch and a tag/ });
    await assertNothingPlaced();
  });

  for (const reference of [
    'http://example.com/a.git',
    'https://user@example.com/a.git',
    'https://example.com/a.git#--upload-pack=x',
    'https://example.com/a.git#a..b',
    'https://example.com/a.git:../b',
    'https://example.com/a.git:/b',
    'https://example.com/a',
    'ssh://example.com/a.git',
    'file:///tmp/a.git',
    'git@example.com:a.git',
    `https://example.com/${'a'.repeat(900)}.git`,
  ]) {
    it(`${reference.slice(0, 60)} is no reference`, async () => {
      await assert.rejects(pull(reference), { code: 'TEMPER_USAGE' });
    });
  }

  it('an address of the cloud is not reached, whatever name leads there', async () => {
    await assert.rejects(pull('https://169.254.169.254/a.git'), { code: 'TEMPER_FETCH_DENIED' });
    await assert.rejects(pull('https://127.0.0.1/a.git'), { code: 'TEMPER_FETCH_DENIED' });
  });

  const BLOB = (text: string) => async (): Promise<string> => {
    const id = await repository.run(['hash-object', '-w', '--stdin'], text);
    return id.toString().trim();
  };
  const blob = BLOB('/etc/passwd');
  /** Writes a tree with a document and these entries, as no program of Git would, and a commit of it. */
  async function hostileCommit(entries: readonly [mode: string, name: string, id: string][]): Promise<string> {
    const all = [['100644', 'SKILL.md', await BLOB(SKILL_TEXT)()] as const, ...entries];
    const sorted = all.toSorted(([, one], [, other]) => (one < other ? -1 : 1));
    const content = sorted.flatMap(([mode, name, id]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]);
    const write = ['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'];
    const tree = (await repository.run(write, Buffer.concat(content))).toString().trim();
    return repository.git('commit-tree', '-m', 'x', tree);
  }

  const hostile: [what: string, entries: () => Promise<[string, string, string][]>, message: RegExp][] = [
    ['a symbolic link', async () => [['120000', 'link.md', await blob()]], /link\.md is a link or a submodule/],
    ['a link in place of a folder', async () => [['120000', 'references', await blob()]], /is a link or a submodule/],
    ['a submodule', async () => [['160000', 'module', '1'.repeat(40)]], /is a link or a submodule/],
    ['a device', async () => [['020666', 'null', await blob()]], /link or a submodule|form of Git/],
    [
      'the folder above',
      async () => [['40000', '..', await repository.git('rev-parse', 'main^{tree}')]],
      /an entry "\.\."/,
    ],
    [
      'a folder of Git',
      async () => [['40000', '.GIT', await repository.git('rev-parse', 'main^{tree}')]],
      /an entry "\.GIT"/,
    ],
    ['a name with a slash', async () => [['100644', 'a/b', await blob()]], /not in the form of Git/],
    ['a folder with itself many times', () => bomb(), /more than 1000 files and folders/],
    [
      'a hundred files',
      async () =>
        Promise.all(
          Array.from({ length: 100 }, async (_, n) => ['100644', `f${n}`, await blob()] as [string, string, string]),
        ),
      /more than 66 files/,
    ],
    ['folders in folders', () => nested(12), /more than 8 levels/],
    ['a file that is missing', async () => [['100644', 'gone.md', '2'.repeat(40)]], /refuses|did not send|not our ref/],
  ];
  async function treeOf(entries: string): Promise<string> {
    return (await repository.run(['mktree', '--missing'], entries)).toString().trim();
  }
  async function bomb(): Promise<[string, string, string][]> {
    let tree = await treeOf(`100644 blob ${await blob()}\tf\n`);
    for (let level = 0; level < 6; level += 1)
      tree = await treeOf(Array.from({ length: 10 }, (_, n) => `040000 tree ${tree}\td${n}\n`).join(''));
    return [['40000', 'bomb', tree]];
  }
  async function nested(levels: number): Promise<[string, string, string][]> {
    let tree = await treeOf(`100644 blob ${await blob()}\tf\n`);
    for (let level = 0; level < levels; level += 1) tree = await treeOf(`040000 tree ${tree}\td\n`);
    return [['40000', 'd', tree]];
  }
  for (const [what, entries, message] of hostile) {
    it(`a commit with ${what} leaves no file`, async () => {
      const commit = await hostileCommit(await entries());
      await mkdir(join(root, 'got'));
      await assert.rejects(
        pull(git(`#${commit}`)),
        (error) => isTemperError(error, 'TEMPER_CONNECTION_FAILED') && message.test(error.message),
      );
      await assertNothingPlaced();
    });
  }

  it('a program of a repository is no program in the folder, and files that are no text are left out', async () => {
    const image = (await repository.run(['hash-object', '-w', '--stdin'], Buffer.from([0x89, 0x50, 0, 0xff])))
      .toString()
      .trim();
    const commit = await hostileCommit([
      ['100755', 'run.sh', await BLOB('#!/bin/sh\nexit 0\n')()],
      ['100644', 'logo.png', image],
      ['100644', 'my notes.md', await BLOB('x')()],
    ]);
    await mkdir(join(root, 'got'));
    const { code, errors } = await pull(git(`#${commit}`));
    assert.equal(code, 0);
    assert.match(
      errors,
      /logo\.png is not UTF-8 text and is left out[\s\S]*my notes\.md has a name that is not allowed/,
    );
    assert.deepEqual(Object.keys(await textsIn('got')), [
      'notes/.temper-source.json',
      'notes/SKILL.md',
      'notes/run.sh',
    ]);
    await assert.rejects(access(join(root, 'got/notes/run.sh'), 1), { code: 'EACCES' });
  });
});
