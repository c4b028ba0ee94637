import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openAudit } from '../../../src/audit/recorded-trail.ts';
import { sha256 } from '../../../src/lib/canonical.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import { stateKeys } from '../../../src/standalone/trust/state-key.ts';
import { prepareStateFolder } from '../../../src/standalone/trust/trust.ts';
import { openRegistry } from '../../../src/tempering/registry/registry.ts';
import { aCaller, anAcceptance } from '../../../src/tempering/tempering.testing.ts';
import { type OciRegistry, startRegistry } from '../../cluster/registry.ts';

const TEMPER = fileURLToPath(new URL('../../../bin/temper', import.meta.url));

describe('tools in an OCI registry', () => {
  let registry: OciRegistry;
  let folder: string;

  const temper = (...args: string[]) =>
    promisify(execFile)(TEMPER, args, {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        XDG_CONFIG_HOME: join(folder, 'config'),
        DOCKER_CONFIG: join(folder, 'docker'),
      },
    });
  const fails = (args: string[], words: RegExp) =>
    assert.rejects(temper(...args), (error) => words.test(String((error as { stderr?: string }).stderr)));
  const authorization = () => `Basic ${Buffer.from(`${registry.username}:${registry.password}`).toString('base64')}`;
  /** A request of another client. */
  const get = (path: string) =>
    fetch(`http://${registry.host}/v2/team/double/${path}`, {
      headers: {
        authorization: authorization(),
        accept: 'application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json',
      },
    });

  /** A state folder of this user with one tool. */
  async function aState(): Promise<void> {
    const keys = stateKeys(join(folder, 'config/temper'));
    await prepareStateFolder(join(folder, 'state'), keys);
    const records = fileRecordStore(join(folder, 'state'));
    const audit = await openAudit({ records, clock: systemClock, key: await keys.findOrCreate() });
    const tools = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
    await tools.register(anAcceptance(), aCaller());
    await audit.flush();
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-oci-'));
    registry = await startRegistry();
    await mkdir(join(folder, 'docker'));
    await aState();
  });
  after(async () => {
    await registry?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  it('a push needs the credential of the Docker configuration file', async () => {
    const reference = `oci://${registry.host}/team/double:v1`;
    await fails(['tool', 'push', 'double', reference, '--state', 'state'], /TEMPER_OCI_UNAUTHORIZED.*docker login/);
    const auths = (password: string) => {
      const auth = Buffer.from(`${registry.username}:${password}`).toString('base64');
      return writeFile(join(folder, 'docker/config.json'), JSON.stringify({ auths: { [registry.host]: { auth } } }));
    };
    await auths('wrong');
    await fails(['tool', 'push', 'double', reference, '--state', 'state'], /TEMPER_OCI_UNAUTHORIZED.*answered 401/);
    await auths(registry.password);
    const { stdout } = await temper('tool', 'push', 'double', reference, '--state', 'state');
    assert.match(
      stdout,
      /^double \(sha256:[0-9a-f]{64}\) is at oci:\/\/\S+@sha256:[0-9a-f]{64}, with its attestation\n$/,
    );
  });

  it('another client finds the manifest, its file, and the attestation that refers to it', async () => {
    const response = await get('manifests/v1');
    const text = await response.text();
    assert.equal(response.headers.get('content-type'), 'application/vnd.oci.image.manifest.v1+json');
    assert.equal(response.headers.get('docker-content-digest'), sha256(text));
    const { layers } = JSON.parse(text) as { layers: { digest: string; annotations: Record<string, string> }[] };
    assert.deepEqual(layers[0]?.annotations, { 'org.opencontainers.image.title': 'double.json' });
    const packaged = await (await get(`blobs/${layers[0]?.digest}`)).json();
    assert.equal((packaged as { schemaVersion: string }).schemaVersion, 'agentos.emergent-tool.v1');
    const listed = await get(`referrers/${sha256(text)}`);
    assert.equal(listed.status, 404, 'this registry keeps no list of referrers');
    const index = await get(`manifests/${sha256(text).replace(':', '-')}`);
    const { manifests } = (await index.json()) as { manifests: { artifactType: string }[] };
    assert.deepEqual(
      manifests.map(({ artifactType }) => artifactType),
      ['application/vnd.dsse.envelope.v1+json'],
    );
  });

  it('a pulled tool is verified against the key of its exporter, and imported', async () => {
    const reference = `oci://${registry.host}/team/double:v1`;
    const { stdout: key } = await temper('tool', 'key');
    await writeFile(join(folder, 'key.pem'), key);
    const files = ['--file', 'double.json', '--attestation', 'double.attestation.json', '--trusted-key', 'key.pem'];
    const { stdout } = await temper('tool', 'pull', reference, ...files);
    assert.match(stdout, /attested by the trusted key\n$/);
    const verified = await temper('tool', 'verify', 'double.json', ...files.slice(2));
    assert.match(verified.stdout, /the trusted key signed its attestation\n$/);
    const imported = await temper(
      'tool',
      'import',
      'double.json',
      '--agent',
      'writer',
      '--state',
      'other',
      ...files.slice(2),
    );
    assert.match(imported.stdout, /the next session of agent default\/writer/);
    const { stdout: printed } = await temper('tool', 'pull', reference);
    assert.equal(printed, await readFile(join(folder, 'double.json'), 'utf8'));
    await fails(['tool', 'pull', reference.replace('v1', 'v2')], /TEMPER_NOT_FOUND/);
  });
});
