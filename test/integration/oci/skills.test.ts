import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sha256 } from '../../../src/lib/canonical.ts';
import { type OciRegistry, startRegistry } from '../../cluster/registry.ts';
import { ROOT, temper } from '../../system/command.ts';

const FILES = ['SKILL.md', 'references/style.md'];

describe('skills in an OCI registry', () => {
  let registry: OciRegistry;
  let folder: string;
  let reference: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-oci-skills-'));
    registry = await startRegistry();
    reference = `oci://${registry.host}/team/release-notes:v1`;
    const auth = Buffer.from(`${registry.username}:${registry.password}`).toString('base64');
    await mkdir(join(folder, 'docker'));
    await writeFile(join(folder, 'docker/config.json'), JSON.stringify({ auths: { [registry.host]: { auth } } }));
    await cp(join(ROOT, 'manifests/skills/release-notes'), join(folder, 'release-notes'), { recursive: true });
  });
  after(async () => {
    await registry?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const skill = async (verb: 'push' | 'pull', ...args: string[]) => {
    const environment = { DOCKER_CONFIG: join(folder, 'docker') };
    const result = await temper(['skill', verb, ...args, '-o', 'json'], { cwd: folder, environment });
    assert.equal(result.code, 0, result.stderr);
    return JSON.parse(result.stdout) as Record<string, string>;
  };
  /** A request of another client. */
  const get = (path: string) =>
    fetch(`http://${registry.host}/v2/team/release-notes/${path}`, {
      headers: {
        authorization: `Basic ${Buffer.from(`${registry.username}:${registry.password}`).toString('base64')}`,
        accept: 'application/vnd.oci.image.manifest.v1+json',
      },
    });

  it('another client finds one layer for each file, with its path as the title', async () => {
    const { manifest } = await skill('push', 'release-notes', reference);
    const response = await get('manifests/v1');
    const text = await response.text();
    assert.equal(sha256(text), manifest);
    const { artifactType, layers } = JSON.parse(text) as {
      artifactType: string;
      layers: { digest: string; annotations: Record<string, string> }[];
    };
    assert.equal(artifactType, 'application/vnd.temper.skill.v1');
    const titles = layers.map(({ annotations }) => annotations['org.opencontainers.image.title']);
    assert.deepEqual(titles, FILES);
    for (const [index, path] of FILES.entries())
      assert.equal(
        await (await get(`blobs/${layers[index]?.digest}`)).text(),
        await readFile(join(folder, 'release-notes', path), 'utf8'),
      );
  });

  it('a pull by tag and by digest writes the same files, and names a tag that moved', async () => {
    const first = await skill('push', 'release-notes', reference);
    const pulled = await skill('pull', reference, '--folder', 'one');
    assert.deepEqual([pulled['manifest'], pulled['source']], [first['manifest'], `${reference}@${first['manifest']}`]);
    await writeFile(join(folder, 'release-notes/references/style.md'), '# Style\n\nOther rules.\n');
    const second = await skill('push', 'release-notes', reference);
    assert.equal(second['previous'], first['manifest']);
    const moved = await skill('pull', reference, '--folder', 'one', '--replace');
    assert.deepEqual([moved['manifest'], moved['previous']], [second['manifest'], pulled['source']]);
    const pinned = await skill('pull', `${reference}@${first['manifest']}`, '--folder', 'two');
    assert.deepEqual([pinned['manifest'], pinned['tagNow']], [first['manifest'], second['manifest']]);
    const style = (name: string) => readFile(join(folder, name, 'references/style.md'), 'utf8');
    assert.match(await style('one'), /Other rules/);
    assert.doesNotMatch(await style('two'), /Other rules/);
  });
});
